"""MERGE takes every table expression that DuckDB takes, and its clauses see the names that they see there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import lance_sql
from lance_sql.statements.merge import _matched_columns

#: What follows ``MERGE INTO t``; DuckDB refuses some of them, and so must we.
MERGES = r"""
USING range(3) ON t.k = range.range WHEN MATCHED THEN UPDATE SET v = range.range
USING range(3) r ON t.k = r.range WHEN MATCHED THEN UPDATE SET v = r.range WHEN NOT MATCHED THEN INSERT
    VALUES (r.range, 1)
USING range(3) r(x) ON t.k = r.x WHEN MATCHED THEN UPDATE SET v = x WHEN NOT MATCHED THEN INSERT VALUES
    (x, 1)
USING range(3) AS r(x) ON t.k = x WHEN NOT MATCHED THEN INSERT VALUES (x, 1)
USING generate_series(1,3) AS g(k) USING (k) WHEN NOT MATCHED THEN INSERT VALUES (k, 1) WHEN MATCHED
    THEN DELETE
USING (a JOIN b ON a.k = b.k) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w WHEN NOT MATCHED THEN
    INSERT VALUES (a.k, b.w)
USING (a JOIN b USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w WHEN NOT MATCHED THEN
    INSERT VALUES (a.k, b.w)
USING (a JOIN b USING (k)) USING (k) WHEN MATCHED THEN UPDATE SET v = b.w WHEN NOT MATCHED THEN INSERT
    VALUES (b.k, b.w)
USING (a JOIN b ON a.k = b.k) x ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = x.w
USING (a JOIN b ON a.k = b.k) AS x ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = w WHEN NOT MATCHED THEN
    INSERT VALUES (x.k, x.w)
USING a JOIN b USING (k) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING a JOIN b ON a.k = b.k ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING a, b ON t.k = a.k AND t.k = b.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (VALUES (0, 5), (9, 9)) ON t.k = col0 WHEN MATCHED THEN UPDATE SET v = col1
USING (VALUES (0, 5), (9, 9)) s ON t.k = s.col0 WHEN MATCHED THEN UPDATE SET v = s.col1 WHEN NOT MATCHED
    THEN INSERT VALUES (col0, col1)
USING (VALUES (0, 5), (9, 9)) s(k, z) USING (k) WHEN MATCHED THEN UPDATE SET v = s.z WHEN NOT MATCHED
    THEN INSERT VALUES (s.k, z)
USING (VALUES (0, 5), (9, 9)) s(k, v) USING (k) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING VALUES (0, 5), (9, 9) ON t.k = col0 WHEN MATCHED THEN UPDATE SET v = col1
USING (FROM a) s USING (k) WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT
USING (SELECT * FROM a) USING (k) WHEN MATCHED THEN UPDATE SET v = 7 WHEN NOT MATCHED THEN INSERT
USING (SELECT k, v FROM a UNION ALL SELECT k+1, w FROM b) s USING (k) WHEN MATCHED THEN UPDATE SET v =
    s.v WHEN NOT MATCHED THEN INSERT
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v WHEN NOT MATCHED THEN INSERT
USING a AS s(k, q) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.q WHEN NOT MATCHED THEN INSERT VALUES
    (s.k, q)
USING main.a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v WHEN NOT MATCHED THEN INSERT
USING main.a ON t.k = main.a.k WHEN MATCHED THEN UPDATE SET v = main.a.v WHEN NOT MATCHED THEN INSERT
USING unnest([0, 1, 8]) u(k) USING (k) WHEN MATCHED THEN UPDATE SET v = k WHEN NOT MATCHED THEN INSERT
    VALUES (k, 0)
USING unnest([0, 1, 8]) ON t.k = unnest WHEN MATCHED THEN UPDATE SET v = unnest WHEN NOT MATCHED THEN
    INSERT VALUES (unnest, 0)
USING read_csv('x.csv') c ON t.k = c.k WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT
USING 'x.csv' c ON t.k = c.k WHEN MATCHED THEN UPDATE SET v = c.v WHEN NOT MATCHED THEN INSERT
USING 'x.csv' ON t.k = x.k WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT
USING (UNPIVOT b ON w INTO NAME n VALUE q) p ON t.k = p.k WHEN MATCHED THEN UPDATE SET v = p.q
USING a TABLESAMPLE 100% ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v
USING (a TABLESAMPLE 100%) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v
USING (a) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v
USING (a) s ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v
USING ((a JOIN b USING (k))) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (a POSITIONAL JOIN b) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (a ASOF JOIN b ON a.k >= b.k) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (a, b) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (a NATURAL JOIN b) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = b.w
USING (a CROSS JOIN range(1)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = range WHEN NOT MATCHED BY
    SOURCE THEN DELETE
USING (a CROSS JOIN range(1) r(z)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = z WHEN NOT MATCHED BY
    SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (a.k, a.v)
USING mac(1) m ON t.k = m.k WHEN MATCHED THEN UPDATE SET v = m.k WHEN NOT MATCHED THEN INSERT VALUES
    (m.k, 0)
USING mac(1) ON t.k = mac.k WHEN MATCHED THEN UPDATE SET v = mac.k WHEN NOT MATCHED THEN INSERT VALUES
    (mac.k, 0)
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v RETURNING error('x')
USING a ON t.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (a.k, a.v) RETURNING k, v, merge_action
USING a ON t.k = a.k WHEN MATCHED AND error('boom') IS NULL THEN DELETE
USING (a JOIN t AS tt USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = tt.v + 1
USING t AS u ON t.k = u.k WHEN MATCHED THEN UPDATE SET v = u.v + 1
USING (TABLE a) z ON t.k = z.k WHEN MATCHED THEN UPDATE SET v = z.v
USING glob('x.csv') ON t.k = 0 WHEN MATCHED THEN UPDATE SET v = 3
USING (SHOW TABLES) ON t.k = 0 AND name = 'a' WHEN MATCHED THEN UPDATE SET v = 3
USING (DESCRIBE a) s ON t.k = 0 AND s.column_name = 'k' WHEN MATCHED THEN UPDATE SET v = 3
USING (a LEFT JOIN b ON a.k = b.k AND b.w > 1000) ON t.k = a.k WHEN MATCHED AND b.w IS NULL THEN UPDATE
    SET v = a.v WHEN NOT MATCHED THEN INSERT
USING (a SEMI JOIN b ON a.k = b.k AND b.w > 1000) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v WHEN
    NOT MATCHED THEN INSERT
USING (a SEMI JOIN b USING (k)) j ON t.k = j.k WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING (a JOIN b USING (k)) WHEN MATCHED THEN UPDATE SET v = b.w
USING LATERAL (SELECT 0 AS k) l ON t.k = l.k WHEN MATCHED THEN UPDATE SET v = 1
USING repeat_row(0, 1, num_rows => 1) ON t.k = column0 WHEN MATCHED THEN UPDATE SET v = column1
USING range(3) WITH ORDINALITY AS r(x, o) ON t.k = x WHEN MATCHED THEN UPDATE SET v = o
USING (VALUES (1)) AS s(k) ON (t.k = s.k) WHEN MATCHED THEN UPDATE SET v = 3
USING a AS "S s" ON t.k = "S s".k WHEN MATCHED THEN UPDATE SET v = "s S".v
USING a ON t.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (k, v)
USING a ON t.k = a.k WHEN NOT MATCHED AND k > 1 THEN INSERT VALUES (k, v)
USING a ON t.k = a.k WHEN MATCHED AND k > 1 THEN UPDATE SET v = 1
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = v + 1
USING b ON t.k = b.k WHEN MATCHED THEN UPDATE SET v = v + w
USING b ON t.k = b.k WHEN MATCHED THEN UPDATE SET v = t.v + b.w WHEN NOT MATCHED THEN INSERT VALUES
    (t.k, w)
USING a USING (k) WHEN NOT MATCHED THEN INSERT VALUES (k, 1) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET
    v = k
USING a USING (k) WHEN NOT MATCHED THEN INSERT VALUES (k, 1) WHEN NOT MATCHED BY SOURCE THEN UPDATE SET
    v = a.k
USING a USING (k) WHEN NOT MATCHED BY SOURCE AND v > 10 THEN UPDATE SET v = k
USING b USING (k) WHEN NOT MATCHED BY SOURCE AND v > 10 THEN UPDATE SET v = k WHEN MATCHED AND k = 0
    THEN UPDATE SET v = k + w
USING (a JOIN b ON a.k = b.k) ON t.k = a.k WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING (SELECT 0 AS k, 1 AS v) ON t.k = k WHEN MATCHED THEN UPDATE
USING (SELECT 0 AS k, 1 AS v) USING (k) WHEN MATCHED THEN UPDATE SET v = unnamed_subquery.v
USING (SELECT 0 AS k, 1 AS v) USING (k) WHEN MATCHED THEN UPDATE
USING (SELECT 0 AS kk, 1 AS vv) ON k = kk WHEN MATCHED THEN UPDATE SET v = vv
USING (a JOIN b USING (k)) USING (k) WHEN MATCHED THEN UPDATE SET v = k + w WHEN NOT MATCHED THEN INSERT
    VALUES (k, w)
USING (SELECT k FROM a) s JOIN b USING (k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = w WHEN NOT
    MATCHED THEN INSERT (k, v) VALUES (s.k, w)
USING (a JOIN (SELECT k, w AS v2 FROM b) z USING (k)) ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = z.v2
USING (SELECT k FROM a) s POSITIONAL JOIN (SELECT w AS v FROM b) z USING (k) WHEN MATCHED THEN UPDATE
    WHEN NOT MATCHED THEN INSERT
USING (range(0, 8, 7) r(k) POSITIONAL JOIN generate_series(5, 6) s(v)) USING (k) WHEN MATCHED THEN
    UPDATE WHEN NOT MATCHED THEN INSERT
USING ('x.csv' JOIN b USING (k)) USING (k) WHEN MATCHED THEN UPDATE SET v = x.v + w WHEN NOT MATCHED
    THEN INSERT VALUES (k, w)
USING ('x.csv' JOIN (SELECT 1) o ON true) USING (k) WHEN MATCHED THEN UPDATE SET v = x.v
USING 'x.csv' USING (k) WHEN MATCHED THEN UPDATE SET v = x.v WHEN NOT MATCHED THEN INSERT
USING 'x.csv' USING (k) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING read_csv('x.csv') USING (k) WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING range(5,7) ON t.k = range WHEN MATCHED THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT VALUES
    (range, 1)
USING (VALUES (0, 7), (2, 4)) ON t.k = col0 WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT
USING (VALUES (0, 7), (2, 4)) ON t.k = col0 WHEN NOT MATCHED THEN INSERT
USING (VALUES (0, 7), (2, 4)) v(k, v) ON t.k = v.k WHEN MATCHED THEN UPDATE SET v = v.v WHEN NOT MATCHED
    THEN INSERT
USING a ON t.k = a.k AND CASE WHEN a.k > 1 THEN true ELSE a.v = 100 END WHEN MATCHED THEN UPDATE SET v =
    CASE WHEN a.v > 1 THEN 1 ELSE 2 END
USING a JOIN b ON CASE WHEN a.k = b.k THEN true ELSE false END ON t.k = a.k AND CASE WHEN a.k > 1 THEN
    true ELSE a.v = 100 END WHEN MATCHED THEN UPDATE SET v = CASE WHEN a.v > 1 THEN 1 ELSE 2 END
USING a LEFT JOIN b USING (k) USING (k) WHEN MATCHED THEN UPDATE SET v = w WHEN NOT MATCHED BY SOURCE
    THEN DELETE
USING a JOIN b USING (k) USING (k) WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME
USING t ON t.k = t.k WHEN MATCHED THEN UPDATE SET v = 1
USING a NATURAL JOIN b ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = w
USING a CROSS JOIN b ON t.k = a.k AND b.k = a.k WHEN MATCHED THEN UPDATE SET v = w
USING a POSITIONAL JOIN b ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = w
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v RETURNING error('x'), k
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v RETURNING k, error('x')
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v RETURNING error
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = a.v RETURNING k AS error
USING (SELECT v AS x, k AS y FROM a) s ON t.k = s.y WHEN MATCHED THEN UPDATE BY POSITION WHEN NOT MATCHED
    THEN INSERT BY POSITION *
USING (SELECT v AS k, k AS v FROM a) s ON t.k = s.v WHEN MATCHED THEN UPDATE BY POSITION WHEN NOT MATCHED
    THEN INSERT BY NAME *
USING (SELECT v AS k, k AS v FROM a) s ON t.k = s.v WHEN MATCHED AND s.k > 5 THEN UPDATE BY NAME WHEN NOT
    MATCHED AND CASE WHEN s.k = 3 THEN false ELSE true END THEN INSERT BY POSITION
USING a ON t.k = a.k WHEN MATCHED AND t.v > 10 THEN ERROR 'old' WHEN MATCHED THEN UPDATE SET v = 1
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED AND a.k > 7 THEN ERROR
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = 2 WHEN NOT MATCHED THEN ERROR a.k || ' is new'
USING a ON t.k = a.k WHEN NOT MATCHED BY SOURCE AND v > 90 THEN ERROR (SELECT t.v) WHEN MATCHED THEN DELETE
USING a ON t.k = a.k WHEN MATCHED AND a.v < 0 THEN ERROR CASE WHEN a.v < 0 THEN 'a' END WHEN MATCHED THEN
    DELETE RETURNING merge_action, k
USING a ON t.k = a.k WHEN MATCHED AND a.v < 0 THEN ERROR nothing WHEN MATCHED THEN DELETE
USING a ON t.k = a.k WHEN MATCHED THEN UPDATE SET v = error('no')
""".strip().replace("\n    ", " ")

TABLES = """
CREATE OR REPLACE TABLE t AS SELECT * FROM (VALUES (0, 10), (1, 11), (5, 15)) v(k, v);
CREATE OR REPLACE TABLE a AS SELECT * FROM (VALUES (0, 100), (7, 107)) v(k, v);
CREATE OR REPLACE TABLE b AS SELECT * FROM (VALUES (0, 1000), (7, 1007)) v(k, w);
"""


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    folder = tmp_path_factory.mktemp("merges")
    (folder / "lake").mkdir()
    (folder / "x.csv").write_text("k,v\n0,77\n8,88\n")
    with lance_sql.connect(folder / "lake", engine="duckdb") as con, duckdb.connect() as plain:
        for one in (con, plain):
            one.execute("CREATE TEMP MACRO mac(x) AS TABLE SELECT x AS k")
        yield [con, plain, folder]


def outcome(connection: Any, statement: str) -> tuple[Any, Any]:
    """The answer, and the rows of the table then; None for an error."""
    for created in TABLES.strip().splitlines():
        connection.execute(created)
    try:
        answer = connection.execute(statement).fetchall()
    except (lance_sql.LanceError, duckdb.Error):
        answer = None
    return answer, sorted(connection.execute("SELECT * FROM t").fetchall(), key=repr)


def merge_statement(merge: str, folder: Path) -> str:
    return f"MERGE INTO t {merge.replace('x.csv', f'{folder}/x.csv')}"


@pytest.fixture(scope="module")
def ours(connections: list[Any]) -> Callable[[str], tuple[Any, Any]]:
    """The outcome of a merge, which several tests need, on a dataset."""
    con, _, folder = connections
    return functools.cache(lambda merge: outcome(con, merge_statement(merge, folder)))


@pytest.mark.sampled(12)
@pytest.mark.parametrize("merge", MERGES.splitlines())
def test_merge_means_what_it_means_in_duckdb(
    connections: list[Any], ours: Callable[[str], tuple[Any, Any]], merge: str
) -> None:
    _, plain, folder = connections
    assert ours(merge) == outcome(plain, merge_statement(merge, folder))


def test_most_of_them_are_accepted(ours: Callable[[str], tuple[Any, Any]]) -> None:
    merges = MERGES.splitlines()[::4]
    assert sum(ours(one)[0] is not None for one in merges) > len(merges) / 2


EXPECTED_REFUSALS = [
    ("USING a WHEN MATCHED THEN DELETE", r"MERGE needs a condition"),
    (
        "USING a ON t.k = a.k WHEN NOT MATCHED THEN INSERT VALUES (t.k, a.v)",
        r'Referenced table "t" not found',
    ),
    (
        "USING (a JOIN b ON a.k = b.k) ON t.k = a.k WHEN MATCHED THEN UPDATE",
        r"several columns k. List the columns",
    ),
    ("USING a ON t.k = a.k WHEN MATCHED THEN ERROR", r"The ERROR of WHEN MATCHED applies\. Nothing was"),
    (
        "USING a JOIN b USING (k) ON t.k = a.k WHEN MATCHED THEN ERROR 'no'",
        r"The ERROR of WHEN MATCHED applies: no\.",
    ),
    (
        "USING a ON t.k = a.k WHEN NOT MATCHED BY SOURCE AND v > 11 THEN ERROR v || t.k",
        r"The ERROR of WHEN NOT MATCHED BY SOURCE applies: 155\.",
    ),
    ("USING a ON t.k = a.k WHEN NOT MATCHED THEN ERROR NULL", r"WHEN NOT MATCHED applies: NULL"),
    (
        "USING (SELECT k FROM a) a USING (k) WHEN MATCHED THEN UPDATE BY POSITION",
        r"source has 1 column, .* 2",
    ),
]


@pytest.mark.parametrize(("merge", "message"), EXPECTED_REFUSALS)
def test_refused_merges_change_nothing(connections: list[Any], merge: str, message: str) -> None:
    con = connections[0]
    assert outcome(con, f"MERGE INTO t {merge}")[1] == [(0, 10), (1, 11), (5, 15)]
    with pytest.raises(lance_sql.LanceError, match=message):
        con.execute(f"MERGE INTO t {merge}")


def test_a_join_merges_the_columns_of_its_using(connections: list[Any]) -> None:
    merge = (
        "MERGE INTO t USING (a FULL JOIN (SELECT 1 AS k UNION ALL SELECT 8) z USING (k)) USING (k) "
        "WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT"
    )
    rows = [(0, -1), (1, -1), (5, 15), (7, 107), (8, None)]
    assert outcome(connections[0], merge) == ([(4,)], rows)


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        ("ON t.k = s.k", ["k"]),
        ("ON s.x = T.K", ["k"]),
        ("ON (t.k) = (s.k) AND t.v = s.w", ["k", "v"]),
        ("ON t.k = s.k AND t.v = 1", ["k"]),
        ("ON t.k = s.k AND t.v > s.w", ["k"]),
        ("ON t.k = s.k OR t.v = s.w", []),
        ("ON t.k = t.v", []),
        ("ON s.k = s.x", []),
        ("ON k = s.k", []),
        ("ON t.v.k = s.k", []),
        ("ON t.v + 1 = s.k", []),
        ("ON true", []),
        ("USING (K, v)", ["k", "v"]),
        ("USING (k, other)", ["k"]),
    ],
)
def test_columns_that_equal_a_column_of_the_source(condition: str, columns: list[str]) -> None:
    """Keys of the rows that a MERGE inserts: others must not insert them meanwhile."""
    statement = sqlglot.parse_one(
        f"MERGE INTO t USING s {condition} WHEN MATCHED THEN DELETE", dialect="duckdb"
    )
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    assert _matched_columns(statement, schema) == columns
