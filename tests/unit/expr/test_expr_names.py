"""Column names of any kind survive rendering and parsing."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from lance_engine.expr.from_sql import parse_sql
from lance_engine.expr.render import identifier
from lance_engine.expr.tree import columns_of

ODD = ["a.b", 'quo"te', "it's", "with space", "1st", "Ünï", "UPPER", "a-b", "*", "", "_", "x;y", "--c"]


@pytest.fixture(scope="module")
def keywords() -> list[str]:
    with duckdb.connect() as con:
        return [
            row[0] for row in con.execute("SELECT DISTINCT keyword_name FROM duckdb_keywords()").fetchall()
        ]


def test_keywords_and_odd_names(keywords: list[str]) -> None:
    assert len(keywords) > 300
    for name in [*keywords, *ODD]:
        schema = pa.schema(
            [pa.field(name, pa.int32()), pa.field("st", pa.struct([pa.field(name or "e", pa.int8())]))]
        )
        for text in (
            f"{identifier(name)} > 1 OR {identifier(name)} IS NULL",
            f"st.{identifier(name or 'e')} < 5",
        ):
            node = parse_sql(text, schema)
            assert parse_sql(str(node), schema) == node, text
            assert str(node) == text
            assert columns_of(node) in ({name}, {"st"})


def test_case_is_ignored_only_where_that_is_clear() -> None:
    schema = pa.schema({"Price": pa.int32(), "PRICE": pa.int32(), "Day": pa.int32()})
    assert str(parse_sql("day = 1", schema)) == "Day = 1"
    assert str(parse_sql("PRICE = 1", schema)) == "PRICE = 1"
    with pytest.raises(LookupError, match=r"[Cc]olumn 'price' not found"):
        parse_sql("price = 1", schema)
