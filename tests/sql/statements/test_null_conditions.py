"""Conditions with NULL select the same rows from a dataset as from a table in memory, on both engines."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import lance_sql
import lance_sql.datafusion
from lance_sql.errors import SqlError

TABLE = pa.table(
    {
        "x": pa.array([1, 2, None, 4]),
        "s": ["a", None, "b", "c"],
        "b": [True, False, None, True],
        "d": pa.array(
            [datetime.date(2024, 1, 1), None, datetime.date(2024, 1, 3), datetime.date(2024, 1, 4)]
        ),
    }
)
VALUES = {"x": "1", "s": "'a'", "d": "DATE '2024-01-01'"}
#: Conditions on a column {c} and a value {v}.
SHAPES = (
    "{c} = NULL",
    "NULL > {c}",
    "NOT ({c} = NULL)",
    "{c} IS NOT DISTINCT FROM NULL",
    "{c} IN (NULL, {v})",
    "{c} NOT IN (NULL, {v})",
    "NOT ({c} IN (NULL, {v}))",
    "{c} BETWEEN NULL AND {v}",
    "{c} NOT BETWEEN NULL AND {v}",
    "{c} BETWEEN {v} AND NULL",
    "NULL AND {c} = {v}",
    "NULL OR {c} = {v}",
    "{c} = {v} OR NULL",
    "{c} = NULL OR {c} = {v}",
    "NULL IN ({c}, {v})",
    "NULLIF({c}, {v}) = NULL",
    "NULLIF({c}, NULL) = {v}",
    "CASE WHEN {c} = NULL THEN true ELSE {c} = {v} END",
    "{c} = CASE WHEN false THEN {v} END OR {c} = {v}",
    "COALESCE({c} = NULL, true)",
    "({c} = NULL) IS NULL",
    "{c} IN (SELECT NULL)",
    "{c} = {v} AND b IN (NULL, true)",
)
JOINS = (
    "a.x = b.x AND NULL",
    "a.x = b.x OR NULL",
    "a.x = b.x AND b.x IN (NULL, 1)",
    "NULL AND a.x = b.x",
    "a.x = b.x AND a.x BETWEEN NULL AND 1",
    "a.x = b.x AND a.s = NULL",
)
QUERIES = [
    *(
        f"SELECT x, s FROM t WHERE {shape.format(c=column, v=value)}"
        for shape in SHAPES
        for column, value in VALUES.items()
    ),
    *(
        f"SELECT a.x, b.x AS y FROM t a {kind} JOIN t b ON {on}"
        for on in JOINS
        for kind in ("", "LEFT", "FULL")
    ),
    "SELECT a.x, b.x AS y FROM t a, t b WHERE a.x = b.x AND (NULL AND b.s = 'a')",
    "SELECT s FROM t GROUP BY s HAVING count(*) IN (NULL, 1)",
    "SELECT s FROM t GROUP BY s HAVING NULL AND s = 'a'",
    "SELECT s FROM t WHERE s LIKE NULL AND x = 1",
    "SELECT count(*) AS n FROM t WHERE x IN (NULL, 1)",
    "SELECT count(*) FILTER (WHERE x IN (NULL, 1)) AS n FROM t",
    "SELECT x FROM t WHERE x IN (SELECT x FROM t WHERE s NOT IN (NULL, 'b') OR s = 'c')",
    "WITH q AS (SELECT * FROM t WHERE NULL OR x > 1) SELECT x FROM q WHERE b IN (NULL, true)",
]


def rows(found: pa.Table) -> list[str]:
    return sorted(str(row) for row in found.to_pylist())


def expected(query: str) -> list[str]:
    context = datafusion.SessionContext()
    context.from_arrow(TABLE, "t")
    return rows(context.sql(query).to_arrow_table())


@pytest.fixture(params=["duckdb", "datafusion", "installed", "registered"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., pa.Table]]:
    lance_sql.write(TABLE, tmp_path / "t.lance", max_rows_per_file=2)
    if request.param in ("installed", "registered"):
        context = datafusion.SessionContext()
        if request.param == "installed":
            lance_sql.datafusion.install(context, tmp_path)
        else:
            lance_sql.datafusion.register(context, "t", lance_sql.open(tmp_path / "t.lance"))
        yield lambda query, **options: context.sql(query, **options).to_arrow_table()
        return
    with lance_sql.connect(tmp_path, engine=request.param) as session:
        yield lambda query, **options: session.sql(query, options.get("param_values")).arrow()


@pytest.mark.sampled(1)
def test_conditions_with_null(run: Callable[..., pa.Table]) -> None:
    for query in QUERIES:
        assert rows(run(query)) == expected(query), query


def test_parameters_that_are_null(run: Callable[..., pa.Table]) -> None:
    for condition in ("x IN ($v, 1)", "x BETWEEN $v AND 1", "s = $v OR x = 1"):
        written = expected(f"SELECT x FROM t WHERE {condition}".replace("$v", "NULL"))
        assert rows(run(f"SELECT x FROM t WHERE {condition}", param_values={"v": None})) == written


def test_statements_and_streams(tmp_path: Path) -> None:
    lance_sql.write(TABLE, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        query = "SELECT x FROM t WHERE x IN (NULL, 1)"
        for _ in range(2):
            assert session.sql(query).fetchall() == [(1,)]
            assert [batch.to_pydict() for batch in session.sql(query)] == [{"x": [1]}]
        assert "FilterExec: NULL OR" in str(session.explain(query))
        assert "FilterExec: NULL OR" in str(session.explain(query, analyze=True))
        assert "FilterExec: NULL OR" in str(session.sql(f"EXPLAIN {query}").fetchall())
        session.sql(f"CREATE TABLE copied AS {query}")
        assert session.sql("SELECT x FROM copied").fetchall() == [(1,)]
        session.sql(f"CREATE VIEW seen AS {query}")
        assert session.sql("SELECT * FROM seen WHERE NULL OR x = 1").fetchall() == [(1,)]
        # Other statements keep their conditions in the scan.
        assert "pushed    (x == 1)" in str(session.explain("SELECT x FROM t WHERE x = 1"))


def test_versions_of_datafusion_without_such_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_sql.engines.datafusion import session as module

    monkeypatch.setattr(module, "without_scan_conditions", lambda context: None)
    lance_sql.write(TABLE, tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine="datafusion") as session:
        query: Any = "SELECT x FROM t WHERE x IN (NULL, 1)"
        with pytest.raises(SqlError, match="comparison with NULL"):
            session.sql(query).fetchall()
        with pytest.raises(SqlError, match="comparison with NULL"):
            list(session.sql(query))
        assert session.sql("SELECT x FROM t WHERE x = 1").fetchall() == [(1,)]
