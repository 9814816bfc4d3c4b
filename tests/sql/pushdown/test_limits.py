"""``LIMIT`` without an order: the engine's rows, without reading more of the table than necessary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from bound_queries import bound
from engine_versions import needs_duckdb_2
from lance_engine.dataset import DatasetVersion
from lance_engine.metrics import ScanMetrics
from remote_store import RemoteStore
from s3_proxy import s3_proxy

import lance_sql
from lance_sql.pushdown.limit import limited

if TYPE_CHECKING:
    from conftest import ObjectStore

ROWS = 300_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    number = np.random.default_rng(4)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "x": number.integers(0, 1 << 60, ROWS),
            "y": number.random(ROWS),
            "kind": pa.array(["abc"[row % 3] if row % 7 else None for row in range(ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def path(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> str:
    found = str(tmp_path_factory.mktemp("limits") / "t.lance")
    lance_sql.write(table, found, max_rows_per_file=100_000)
    lance_sql.open(found).delete("id % 2 = 0 AND id < 20 OR id >= 99990 AND id < 100010")
    return found


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("rest", ["", "OFFSET 7", "OFFSET 99970", "OFFSET 299960", "OFFSET 400000"])
@pytest.mark.parametrize("limit", [1, 40, 2000])
def test_it_gives_as_many_rows_as_there_are(engine: str, path: str, rest: str, limit: int) -> None:
    con = lance_sql.connect(engine=engine)
    left = ROWS - 30
    skipped = int(rest.split()[-1]) if rest else 0
    found = con.sql(f"SELECT id, y FROM '{path}' LIMIT {limit} {rest}").arrow()
    ids = found["id"].to_pylist()
    assert len(ids) == len(set(ids)) == max(0, min(limit, left - skipped))
    everything = lance_sql.open(path).scan(["id"]).to_table()["id"].to_pylist()
    assert ids == everything[skipped : skipped + limit]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_conditions_are_tested_before_rows_are_counted(engine: str, path: str) -> None:
    con = lance_sql.connect(engine=engine)
    for where in ("kind = 'b'", "kind IS NULL", "id > 299000", "x * 2 > 5 AND kind || 'x' = 'cx'", "id < 0"):
        text = f"FROM '{path}' WHERE {where}"
        there = con.sql(f"SELECT count(*) {text}").fetchall()[0][0]
        found = con.sql(f"SELECT * {text} LIMIT 50 OFFSET 5").arrow()
        assert found.num_rows == min(50, max(there - 5, 0)), where
        kept = con.sql(
            f"SELECT count(*) {text} AND id IN ({', '.join(map(str, [-1, *found['id'].to_pylist()]))})"
        )
        assert kept.fetchall() == [(found.num_rows,)], where


@pytest.mark.parametrize("engine", [pytest.param("duckdb", marks=needs_duckdb_2), "datafusion"])
@pytest.mark.parametrize(
    "rest", ["LIMIT 10 OFFSET 250000", "limit 10 offset 250000 ;", "LIMIT 250", "LIMIT 70000"]
)
def test_rows_before_and_after_are_not_decoded(
    engine: str, rest: str, table: pa.Table, tmp_path: Path
) -> None:
    uri = str(tmp_path / "t.lance")
    lance_sql.write(table, uri, max_rows_per_file=100_000)
    result = lance_sql.connect(engine=engine).sql(f"SELECT kind, x AS wanted FROM '{uri}' AS a {rest}")
    numbers = [int(word) for word in rest.split() if word.isdecimal()]
    first = numbers[1] if len(numbers) == 2 else 0
    found = result.arrow()
    assert found.num_rows == numbers[0]
    assert result.metrics is not None
    assert found["wanted"].to_pylist() == table["x"][first : first + numbers[0]].to_pylist()
    (scan,) = result.metrics["scans"]
    assert scan["rows_out"] == numbers[0]
    assert scan["rows_decoded"] < numbers[0] + 8192


def test_metrics_of_a_limit_are_complete(path: str) -> None:
    con = lance_sql.connect()
    for _ in range(20):  # threads that still read when the result is complete report their numbers later
        result = con.sql(f"SELECT * FROM '{path}' WHERE x % 2 = 0 LIMIT 20000")
        rows, metrics = result.arrow().num_rows, result.metrics
        assert metrics is not None
        assert metrics["rows_read"] >= rows == 20_000


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t LIMIT 5 OFFSET 200000 -- the end",
        "SELECT id FROM (SELECT id FROM t) LIMIT 5 OFFSET 200000",
        "SELECT id FROM t WHERE id >= 10 LIMIT 5 OFFSET 200000",
        "SELECT id FROM v LIMIT 5 OFFSET 200000",
        "SELECT id FROM t AS t LIMIT 5 OFFSET 200000",
        "SELECT _rowid AS id FROM t LIMIT 5 OFFSET 200000",
        "SELECT s.id FROM t LIMIT 5 OFFSET 200000",
    ],
)
def test_offsets_of_similar_queries(engine: str, query: str, tmp_path: Path) -> None:
    ids = np.arange(ROWS)
    structs = pa.StructArray.from_arrays([ids, ids * 2], ["id", "twice"])
    lance_sql.write(pa.table({"id": ids, "s": structs}), str(tmp_path / "t.lance"))
    con = lance_sql.connect(tmp_path, engine=engine)
    con.sql(
        "CREATE TEMP VIEW v AS SELECT id FROM t"
        if engine == "duckdb"
        else "CREATE VIEW v AS SELECT id FROM t"
    )
    found = con.sql(query).arrow().column(0).to_pylist()
    assert len(set(found)) == 5
    if engine == "duckdb":
        begin = 200_010 if "WHERE" in query else 200_000
        assert found == list(range(begin, begin + 5))


def test_other_statements_see_all_rows(path: str) -> None:
    con = lance_sql.connect()
    assert len(con.sql(f"SELECT * FROM '{path}' LIMIT 3").fetchall()) == 3
    assert con.sql(f"SELECT count(x) FROM '{path}' LIMIT 3").fetchall() == [(ROWS - 30,)]
    assert len(con.sql(f"SELECT DISTINCT kind FROM '{path}' LIMIT 10").fetchall()) == 4
    assert con.sql(f"SELECT * FROM '{path}' ORDER BY id DESC LIMIT 1").fetchall()[0][0] == ROWS - 1
    assert con.sql(f"SELECT id FROM '{path}' LIMIT 3").reader().read_all().num_rows == 3
    assert con.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(ROWS - 30,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_an_object_store_is_asked_for_little(engine: str, table: pa.Table, object_store: ObjectStore) -> None:
    uri = object_store.s3("t.lance")
    lance_sql.write(table.select(["id", "x", "y"]), uri, storage_options=object_store.options)
    wanted = list(zip(*(table[name][5:15].to_pylist() for name in "xy"), strict=True))
    with s3_proxy(object_store.endpoint) as proxy:
        options = {**object_store.options, "aws_endpoint": proxy.endpoint}
        con = lance_sql.connect(engine=engine, storage_options=options)
        for text in (f"SELECT x, y FROM '{uri}' LIMIT 10 OFFSET 5", f"SELECT x, y FROM '{uri}' LIMIT 15"):
            proxy.reset()
            assert con.sql(text).fetchall()[-10:] == wanted
            asked = [request.range for request in proxy.requests if "/data/" in request.path]
            spans = [tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in asked if span]
            assert len(asked) == len(spans) <= 5
            assert sum(last + 1 - first for first, last in spans) < 512 << 10


@pytest.mark.parametrize("filter", [None, "x % 2 = 0"])
def test_a_scan_of_which_few_rows_are_expected_begins_with_few(path: str, filter: str | None) -> None:
    store = RemoteStore.of_folder(Path(path))
    scanner = DatasetVersion.open(store).scan(["x", "y"], filter)
    whole = scanner.to_table()
    store.reset_counters()
    scanner = DatasetVersion.open(store).scan(["x", "y"], filter)
    scanner.expect(10)
    pieces = scanner.pieces(ScanMetrics())
    assert next(pieces).selection.count == 1024
    assert sum(length or 0 for path, _, length in store.ranges if path.startswith("data/")) < 2 << 20
    scanner.stop_fetching()
    pieces.close()
    assert scanner.to_table().equals(whole)


TABLES = {name: ["x", "y"] for name in ("t", "u", "t.lance")}
PLAIN = {
    "SELECT * FROM t LIMIT 3": (3, 0, False),
    "FROM t LIMIT 3;": (3, 0, False),
    "SELECT a.x + 1 AS y, 'c' FROM 't.lance' AS a LIMIT 3 OFFSET 4": (3, 4, False),
    "SELECT x FROM t WHERE x IN (1, 2) AND (y < 3) LIMIT 3": (3, 0, True),
}
OTHERS = [
    "SELECT * FROM t",
    "SELECT * FROM t LIMIT 0",
    "SELECT * FROM t LIMIT 3 PERCENT",
    "SELECT * FROM t LIMIT 3 %",
    "SELECT * FROM t LIMIT ?",
    "SELECT * FROM t LIMIT 1 + 2",
    "SELECT * FROM t LIMIT (SELECT 3)",
    "SELECT * FROM t ORDER BY x LIMIT 3",
    "SELECT count(*) FROM t LIMIT 3",
    "SELECT x.sum() FROM t LIMIT 3",
    "SELECT sum(x) OVER () FROM t LIMIT 3",
    "SELECT DISTINCT x FROM t LIMIT 3",
    "SELECT unnest(x) FROM t LIMIT 3",
    "SELECT x FROM t GROUP BY x LIMIT 3",
    "SELECT x FROM t GROUP BY ALL HAVING x > 1 LIMIT 3",
    "SELECT * FROM t QUALIFY x LIMIT 3",
    "SELECT * FROM t USING SAMPLE 3 LIMIT 3",
    "SELECT * FROM t TABLESAMPLE 10% LIMIT 3",
    "SELECT * FROM t, u LIMIT 3",
    "SELECT * FROM t JOIN u ON x = y LIMIT 3",
    "SELECT * FROM t LIMIT 3 UNION ALL FROM t",
    "FROM t UNION FROM t LIMIT 3",
    "FROM t INTERSECT FROM u LIMIT 3",
    "FROM t SELECT count(x) LIMIT 3",
    "SELECT * FROM (FROM t) LIMIT 3",
    "SELECT * FROM f(3) LIMIT 3",
    "SELECT * FROM t WHERE x IN (FROM u) LIMIT 3",
    "WITH u AS (FROM t) SELECT * FROM u LIMIT 3",
    "SELECT * FROM t VERSION AS OF 3 LIMIT 3",
    "PIVOT t ON x LIMIT 3",
    "UNPIVOT t ON x LIMIT 3",
    "DELETE FROM t LIMIT 3",
    "CREATE TABLE u AS FROM t LIMIT 3",
    "INSERT INTO u FROM t LIMIT 3",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_queries(text: str) -> None:
    query = bound(text, TABLES)
    assert query is not None
    found = limited(query)
    assert found is not None
    assert (len(found.rows), found.rows.start, found.tested) == PLAIN[text]


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_left_to_the_engine(text: str) -> None:
    query = bound(text, TABLES)
    assert query is None or limited(query) is None
