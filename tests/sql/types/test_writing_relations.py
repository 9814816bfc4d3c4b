"""lance_sql.write and merge store DuckDB's relations and our results as CREATE TABLE AS does."""

from __future__ import annotations

import random

import duckdb
import lance
import pyarrow as pa
import pytest
from engine_versions import needs_duckdb_2
from lance_engine.errors import SchemaMismatchError
from test_duckdb_values import VALUES

import lance_sql

pytestmark = needs_duckdb_2

WIDE = [
    "340282366920938463463374607431768211455::UHUGEINT",
    "(-170141183460469231731687303715884105727)::HUGEINT",
]


def _columns(chosen: random.Random) -> list[str]:
    values = [value for value in [*VALUES, *WIDE] if value != "MAP {}"]  # has no type of its keys
    forms = [
        lambda value: value,
        lambda value: f"[{value}, NULL]",
        lambda value: f"{{'a': {value}}}",
        lambda value: f"MAP {{'k': {value}}}",
        lambda value: f"union_value(m := {value})",
    ]
    texts = [chosen.choice(forms)(value) for value in values]
    return [f"CASE WHEN i % 3 < 2 THEN {text} END AS c{number}" for number, text in enumerate(texts)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["relation", "result", "result that was read"])
def test_rows_are_stored_as_by_create_table(tmp_path, form):
    query = f"SELECT i, {', '.join(_columns(random.Random(form)))} FROM range(4) r(i)"
    with lance_sql.connect(tmp_path, engine="duckdb") as session, duckdb.connect() as plain:
        rows = plain.sql(query) if form == "relation" else session.sql(query)
        if form == "result that was read":
            rows.fetchall()
        written = lance_sql.write(rows, tmp_path / "written.lance")
        session.execute(f"CREATE TABLE created AS {query}")
        assert written.storage_schema == lance_sql.open(tmp_path / "created.lance").storage_schema
        for text in ("FROM {} ORDER BY i", "DESCRIBE {}"):
            found, expected = (session.sql(text.format(name)).fetchall() for name in ("written", "created"))
            assert repr(found) == repr(expected)
    assert lance.dataset(tmp_path / "written.lance").to_table().num_rows == 4


def test_appends_and_merges(tmp_path):
    with duckdb.connect() as plain, lance_sql.connect(tmp_path, engine="duckdb") as session:
        first = "SELECT 1 AS i, 5::HUGEINT AS h, 'a'::ENUM('a', 'b') AS e, INTERVAL 1 MONTH AS t, uuid() AS u"
        lance_sql.write(plain.sql(first), tmp_path / "t.lance")
        dataset = lance_sql.write(
            session.sql("SELECT i + 1 AS i, h, e, t, u FROM t"), tmp_path / "t.lance", "append"
        )
        source = plain.sql(
            "SELECT 2 AS i, 7::HUGEINT AS h, 'b'::ENUM('a', 'b') AS e, INTERVAL 3 DAY AS t, NULL AS u"
        )
        dataset.merge(source, "i").when_matched_update_all().execute()
        expected = [(1, "5", "a", "1 month"), (2, "7", "b", "3 days")]
        query = "SELECT i, h::VARCHAR, e, t::VARCHAR FROM t ORDER BY i"
        assert session.sql(query).fetchall() == expected
        # values of another type are converted if that is exact
        rows = pa.table({"i": [3], "h": [9], "e": ["b"], "t": ["1 day"], "u": ["5" * 32]})
        lance_sql.write(rows, tmp_path / "t.lance", "append")
        assert session.sql(query).fetchall() == [*expected, (3, "9", "b", "1 day")]
        for name, value in {"h": "x", "e": "c", "t": "x", "u": "x"}.items():
            with pytest.raises(SchemaMismatchError, match=name):
                lance_sql.write(pa.table({"i": [4], name: [value]}), tmp_path / "t.lance", "append")
        with pytest.raises(SchemaMismatchError, match="h"):  # not the same 16 bytes
            lance_sql.write(plain.sql("SELECT 5 AS i, 1::UHUGEINT AS h"), tmp_path / "t.lance", "append")
        lance_sql.write(lance_sql.open(tmp_path / "t.lance").to_table(), tmp_path / "t.lance", "append")
        assert session.sql("SELECT count(*), count(DISTINCT i) FROM t").fetchall() == [(6, 3)]
