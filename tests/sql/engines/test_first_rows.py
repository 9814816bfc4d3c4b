"""``ORDER BY x LIMIT k``: the same rows as from the engine, while few rows are decoded."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from bound_queries import bound

import lance_sql
from lance_sql.pushdown import top_n as reading
from lance_sql.pushdown.top_n import first_rows

if TYPE_CHECKING:
    from conftest import ObjectStore

ROWS = 40_000
COLUMNS = ["whole", "sorted_", "money", "day", "moment", "share", "single", "rare"]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    number = random.Random(5)
    some = [number.randrange(1000) for _ in range(ROWS)]
    share = [number.choice([math.nan, math.inf, -math.inf, 0.0, -0.0, number.random()]) for _ in range(ROWS)]
    epoch = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "id": range(ROWS),
            "whole": [None if value < 3 else value for value in some],
            "sorted_": range(ROWS),
            "money": pa.array(
                [decimal.Decimal(value * 7 % 991) / 100 for value in some], pa.decimal128(12, 2)
            ),
            "day": [epoch + datetime.timedelta(days=value) for value in some],
            "moment": pa.array([value * 1_000_003 % 997 for value in some], pa.timestamp("us", "UTC")),
            "share": share,
            "single": pa.array(share, pa.float32()),
            "rare": [value if value < 2 else None for value in some],
            "text": [f"the text of row {row}, which is long" for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("first") / "t.lance")
    lance_sql.write(table, found, max_rows_per_file=15_000, zone_rows=1024)
    return found


@pytest.fixture(autouse=True)
def no_table_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_SMALL_BYTES", 0)


def own(engine: str, table: pa.Table) -> Any:
    if engine == "duckdb":
        con = duckdb.connect()
        con.register("t", table)
        return lambda text: con.sql(text).to_arrow_table()
    import datafusion

    context = datafusion.SessionContext()
    context.register_record_batches("t", [table.to_batches()])
    return lambda text: context.sql(text).to_arrow_table()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_rows_are_those_of_the_engine(engine: str, table: pa.Table, path: str) -> None:
    ours, theirs = lance_sql.connect(engine=engine), own(engine, table)
    orders = ["", "DESC", "NULLS FIRST", "DESC NULLS LAST", "ASC NULLS LAST", "DESC NULLS FIRST"]
    wheres = ["", "WHERE id > 300 AND NOT (id BETWEEN 500 AND 39000)", "WHERE rare IS NOT NULL"]
    limits = ["LIMIT 1", "LIMIT 7 OFFSET 3", "LIMIT 150", "LIMIT 1000 OFFSET 500"]
    cases = random.Random(7).sample([*itertools.product(COLUMNS, orders, wheres, limits)], 90)
    for column, order, where, limit in cases:
        text = f"SELECT id, {column}, text FROM {{}} {where} ORDER BY {column} {order}, id {limit}"
        assert first_rows(bound(text.format("t"), {"t": table.schema.names})) is not None
        found, wanted = ours.sql(text.format(f"'{path}'")).arrow(), theirs(text.format("t"))
        assert repr(found.to_pylist()) == repr(wanted.to_pylist()), text


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_few_rows_are_decoded(engine: str, path: str) -> None:
    con = lance_sql.connect(engine=engine)
    result = con.sql(f"SELECT * FROM '{path}' AS t ORDER BY t.sorted_ DESC LIMIT 5 OFFSET 2")
    assert [row[0] for row in result.fetchall()] == [ROWS - 3 - row for row in range(5)]
    key, rows = result.metrics["scans"]
    assert key["columns"] == ["sorted_"]
    assert rows["zones_read"] == 1
    assert rows["rows_decoded"] <= 2 * 1024
    assert rows["rows_out"] == 7


def test_other_statements_see_all_rows(path: str) -> None:
    con = lance_sql.connect()
    first = con.sql(f"SELECT * FROM '{path}' ORDER BY sorted_ LIMIT 3")
    assert len(first.fetchall()) == 3
    assert con.sql(f"SELECT count(text) FROM '{path}'").fetchall() == [(ROWS,)]
    streamed = con.sql(f"SELECT * FROM '{path}' ORDER BY sorted_ LIMIT 3")
    assert streamed.reader().read_all().num_rows == 3
    assert con.sql(f"SELECT max(sorted_) AS m FROM '{path}' WHERE id >= 0").fetchall() == [(ROWS - 1,)]


def test_both_queries_read_one_version(path: str, table: pa.Table, tmp_path: Path) -> None:
    changed = str(tmp_path / "t.lance")
    lance_sql.write(table.slice(0, 20_000), changed)
    con = lance_sql.connect()
    result = con.sql(f"SELECT id, text FROM '{changed}' ORDER BY id DESC LIMIT 2")
    lance_sql.write(table.slice(20_000, 10_000), changed, mode="append")
    assert [row[0] for row in result.fetchall()] == [19_999, 19_998]
    assert [
        row[0] for row in con.sql(f"SELECT id, text FROM '{changed}' ORDER BY id DESC LIMIT 2").fetchall()
    ] == [
        29_999,
        29_998,
    ]


TABLES = {name: ["x", "y", "z"] for name in ("t", "u", "t.lance")}
PLAIN = [
    "SELECT * FROM t ORDER BY x LIMIT 3",
    "SELECT t.x, -y AS z FROM t WHERE y IN (1) AND (z < 3) ORDER BY t.x DESC NULLS LAST, y LIMIT 3 OFFSET 2;",
    "SELECT a.* FROM 't.lance' a ORDER BY \"x\" ASC LIMIT 3",
]
OTHERS = [
    "SELECT * FROM t LIMIT 3",
    "SELECT * FROM t ORDER BY x",
    "SELECT * FROM t ORDER BY x + 1 LIMIT 3",
    "SELECT * FROM t ORDER BY 1 LIMIT 3",
    "SELECT * FROM t ORDER BY x COLLATE nocase LIMIT 3",
    "SELECT * FROM t ORDER BY u.x LIMIT 3",
    "SELECT * FROM t ORDER BY ALL LIMIT 3",
    "SELECT * FROM t ORDER BY x LIMIT 3 PERCENT",
    "SELECT * FROM t ORDER BY x LIMIT 3 %",
    "SELECT * FROM t ORDER BY x LIMIT ?",
    "SELECT * FROM t WHERE y = $1 ORDER BY x LIMIT 3",
    "SELECT * FROM t ORDER BY x LIMIT 0",
    "SELECT -x AS x FROM t ORDER BY x LIMIT 3",
    "SELECT y x FROM t ORDER BY x LIMIT 3",
    "SELECT y + 1 x FROM t ORDER BY x LIMIT 3",
    'SELECT (y) "x" FROM t ORDER BY x LIMIT 3',
    "SELECT unnest(y) FROM t ORDER BY x LIMIT 3",
    "SELECT sum(y) OVER () FROM t ORDER BY x LIMIT 3",
    "SELECT DISTINCT y FROM t ORDER BY x LIMIT 3",
    "SELECT * FROM t WHERE random() < 0.5 ORDER BY x LIMIT 3",
    "SELECT * FROM t WHERE y < current_timestamp ORDER BY x LIMIT 3",
    "SELECT * FROM t WHERE y IN (SELECT 1) ORDER BY x LIMIT 3",
    "SELECT * FROM t, u ORDER BY x LIMIT 3",
    "SELECT * FROM t JOIN u ON y = z ORDER BY x LIMIT 3",
    "SELECT * FROM t TABLESAMPLE 10% ORDER BY x LIMIT 3",
    "SELECT * FROM t GROUP BY ALL ORDER BY x LIMIT 3",
    "SELECT * FROM t QUALIFY y ORDER BY x LIMIT 3",
    "SELECT * FROM f(3) ORDER BY x LIMIT 3",
    "SELECT * FROM (FROM t) ORDER BY x LIMIT 3",
    "SELECT * FROM t AT (VERSION => 3) ORDER BY x LIMIT 3",
    "EXPLAIN SELECT * FROM t ORDER BY x LIMIT 3",
    "WITH u AS (FROM t) SELECT * FROM u ORDER BY x LIMIT 3",
    "SELECT * REPLACE (-x AS x) FROM t ORDER BY x LIMIT 3",
    "(SELECT * FROM t ORDER BY x LIMIT 3) UNION ALL FROM t",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_queries(text: str) -> None:
    assert first_rows(bound(text, TABLES)) is not None


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_left_to_the_engine(text: str) -> None:
    query = bound(text, TABLES)
    assert query is None or first_rows(query) is None


def test_what_does_not_pay(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    con = lance_sql.connect()

    def scans(text: str) -> int:
        result = con.sql(text)
        result.fetchall()
        return len(result.metrics["scans"])

    assert scans(f"SELECT id FROM '{path}' ORDER BY id LIMIT 3") == 1  # no other column
    assert scans(f"SELECT * FROM '{path}' ORDER BY text LIMIT 3") == 1  # collations decide
    assert scans(f"SELECT * FROM '{path}' ORDER BY id LIMIT {ROWS // 2}") == 1
    assert scans(f"SELECT * FROM '{path}' ORDER BY id LIMIT 3") == 2
    monkeypatch.setattr(reading, "_SMALL_BYTES", 1 << 40)
    assert scans(f"SELECT * FROM '{path}' ORDER BY id LIMIT 3") == 1


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_remote_tables_have_to_be_larger(
    engine: str, table: pa.Table, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = object_store.s3("t.lance")
    lance_sql.write(table.slice(0, 2_000), uri, storage_options=object_store.options)
    con = lance_sql.connect(engine=engine, storage_options=object_store.options)
    expected = table.slice(1_997, 3).to_pylist()[::-1]
    for small, scans in ((reading._SMALL_REMOTE_BYTES, 1), (0, 2)):
        monkeypatch.setattr(reading, "_SMALL_REMOTE_BYTES", small)
        result = con.sql(f"SELECT * FROM '{uri}' ORDER BY id DESC LIMIT 3")
        assert [row["id"] for row in result.arrow().to_pylist()] == [row["id"] for row in expected]
        assert result.metrics is not None
        assert len(result.metrics["scans"]) == scans
    result = con.sql(f"SELECT * FROM '{uri}' WHERE id < 1990 ORDER BY id DESC LIMIT 3")
    assert [row["id"] for row in result.arrow().to_pylist()] == [1989, 1988, 1987]
    assert result.metrics is not None
    assert len(result.metrics["scans"]) == 1
