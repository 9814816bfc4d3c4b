"""Joins that only compare strings of their tables: engines get numbers in their place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.session import numbered_keys
from lance_sql.session.wrapped_query import WrappedQuery

ROWS = 3_000
PARTS = 400


@pytest.fixture(autouse=True)
def of_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbered_keys, "_LEAST_FILTERED_ROWS", 1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("joins")
    random = np.random.default_rng(11)
    brands = ["", "it's", "Zoë", "a much longer string than fits in twelve bytes", None]
    part = pa.table(
        {
            "id": range(PARTS),
            "brand": pa.array([brands[i] for i in random.integers(0, 5, PARTS)]),
            "kind": pa.array([f"kind {i}" for i in random.integers(0, 30, PARTS)]),
            "note": pa.array(["x" if i % 3 else "y" for i in range(PARTS)]),
        }
    )
    sale = pa.table(
        {
            "part": random.integers(0, PARTS, ROWS),
            "shop": pa.array([f"shop {i}" for i in random.integers(0, 9, ROWS)]),
            "note": pa.array(["x" if i % 2 else "z" for i in range(ROWS)]),
            "price": random.integers(1, 99, ROWS),
        }
    )
    lance_sql.write(part, str(found / "part.lance"))
    lance_sql.write(sale, str(found / "sale.lance")).delete("price = 7")
    return found


@pytest.fixture(params=["duckdb", "datafusion"])
def sessions(
    request: pytest.FixtureRequest, place: Path
) -> Iterator[tuple[lance_sql.Connection, lance_sql.Connection]]:
    """A session, and one that leaves strings as they are."""
    with (
        lance_sql.connect(str(place), engine=request.param) as con,
        lance_sql.connect(str(place), engine=request.param) as plain,
    ):
        plain._engine.capabilities = replace(plain._engine.capabilities, groups_by_numbers=False)
        yield con, plain


def numbered(result: lance_sql.QueryResult) -> set[str]:
    """The columns that a query compares as numbers."""
    query: object = result._query
    while isinstance(query, WrappedQuery):
        query = query._query
    columns = query._keys.columns if isinstance(query, numbered_keys.NumberedQuery) else ()
    return {column.name for column in columns}


#: What is compared as numbers by DataFusion, and by DuckDB: it leaves strings of one small dictionary.
NUMBERED = {
    "SELECT brand, kind, count(DISTINCT shop) AS shops FROM sale, part WHERE part.id = sale.part "
    "AND brand <> 'Zoë' AND kind NOT LIKE '%7' GROUP BY brand, kind ORDER BY shops DESC, brand, kind": (
        {"brand", "kind", "shop"},
        {"brand", "kind"},
    ),
    "SELECT p.brand AS b, s.shop, min(p.kind), sum(price) FROM sale AS s JOIN part p ON p.id = s.part "
    "GROUP BY b, s.shop ORDER BY b NULLS FIRST, s.shop DESC": ({"brand", "shop"}, {"brand", "shop"}),
    "SELECT brand, sum(price) FROM sale s INNER JOIN part ON id = s.part AND brand > 'a' GROUP BY 1": (
        {"brand"},
        set(),
    ),
    "SELECT kind, price, count(*) FROM part, sale WHERE id = part AND id IN (SELECT part FROM views WHERE "
    "price > 90) GROUP BY kind, price": ({"kind"}, {"kind"}),
    "SELECT shop, count(*) FROM sale WHERE NOT EXISTS (SELECT * FROM part WHERE id = sale.part AND "
    "part.note = 'y') GROUP BY shop HAVING count(*) > 2 ORDER BY shop": ({"shop"}, set()),
    "SELECT DISTINCT shop, kind FROM sale CROSS JOIN part WHERE id = part AND price < 5": (
        {"shop", "kind"},
        {"shop", "kind"},
    ),
    "SELECT count(DISTINCT brand), count(DISTINCT shop) FROM sale, part WHERE id = part": (
        {"brand", "shop"},
        set(),
    ),
    "SELECT brand, shop FROM sale, part WHERE id = part AND price < 0 GROUP BY brand, shop": (
        {"brand", "shop"},
        {"brand", "shop"},
    ),
}
AS_THEY_ARE = [
    "SELECT p.note, s.note, count(*) FROM sale s, part p WHERE id = part GROUP BY p.note, s.note",
    "SELECT a.brand, count(*) FROM part a, part b WHERE a.id = b.id GROUP BY a.brand",
    "SELECT brand, count(*) FROM sale LEFT JOIN part ON id = part GROUP BY brand",
    "SELECT brand, count(*) FROM part WHERE kind = (SELECT max(kind) FROM part) GROUP BY brand",
    "SELECT brand, (SELECT count(*) FROM sale) FROM part GROUP BY brand",
    "SELECT brand, count(*) FROM sale, (SELECT * FROM part) AS p WHERE id = part GROUP BY brand",
    "SELECT brand, count(*) FROM sale, part WHERE id = part GROUP BY brand HAVING max(brand) > 'a'",
    "SELECT brand, count(*) FROM part, views WHERE id = part AND part.note = 'x' GROUP BY brand",
    "WITH part AS (SELECT part AS id, shop AS brand FROM sale) SELECT brand, count(*) FROM part GROUP BY 1",
]


@pytest.mark.parametrize("text", [*NUMBERED, *AS_THEY_ARE])
def test_the_rows_are_those_of_the_strings(
    sessions: tuple[lance_sql.Connection, lance_sql.Connection], text: str
) -> None:
    con, plain = sessions
    for session in sessions:
        session.sql("CREATE VIEW views AS SELECT * FROM sale")
    expected = plain.sql(text).arrow()
    for _ in range(2):
        result = con.sql(text)
        found = result.arrow()
        assert numbered(result) == NUMBERED.get(text, (set(), set()))[con.engine == "duckdb"]
        assert found.schema == expected.schema
        ours, theirs = found.to_pylist(), expected.to_pylist()
        if "ORDER BY" in text:
            assert ours == theirs
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs))


def test_columns_added_to_another_table_make_a_name_ambiguous(tmp_path: Path) -> None:
    lance_sql.write({"id": range(100), "kind": ["a", "b"] * 50}, tmp_path / "t.lance")
    lance_sql.write({"key": range(100)}, tmp_path / "u.lance")
    text = "SELECT t.kind, count(*) AS n FROM t, u WHERE id = key GROUP BY t.kind"
    with lance_sql.connect(str(tmp_path), engine="datafusion") as con:
        first = con.sql(text)
        assert numbered(first) == {"kind"}
        before = first.arrow()
        con.sql("ALTER TABLE u ADD COLUMN kind VARCHAR")
        second = con.sql(text)
        assert not numbered(second)
        assert second.arrow().sort_by("kind") == before.sort_by("kind")
