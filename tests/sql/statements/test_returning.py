"""RETURNING is checked before the statement changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import lance_sql

STATEMENTS = [
    "DELETE FROM t WHERE id = 1 RETURNING {}",
    "DELETE FROM t RETURNING {}",
    "UPDATE t SET k = 5 WHERE id = 2 RETURNING {}",
    "INSERT INTO t VALUES (100, 1) RETURNING {}",
    "INSERT INTO t SELECT id + 100, k FROM t RETURNING {}",
    "MERGE INTO t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET k = 7 RETURNING {}",
]
REFUSED = [
    "max(k)", "list(id)", "id + sum(id)", "row_number() OVER ()", "(SELECT 5)", "unnest([1, 2])", "missing",
    "other.id", "no_such_function(id)",
]  # fmt: skip
ANSWERED = ["*", "id", "t.id + 1 AS next, k", "'count(*)' AS \"max(k)\"", "abs(k)", "list_sum([id, k])"]


@pytest.fixture
def connection(tmp_path: Path, engine: str) -> Iterator[lance_sql.Connection]:
    with lance_sql.connect(str(tmp_path), engine=engine) as opened:
        opened.sql("CREATE TABLE t AS SELECT id, id % 3 AS k FROM (VALUES (0), (1), (2), (3)) AS v(id)")
        yield opened


def native() -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    opened.sql("CREATE TABLE t AS SELECT id, id % 3 AS k FROM (VALUES (0), (1), (2), (3)) AS v(id)")
    return opened


@pytest.mark.parametrize("statement", STATEMENTS)
def test_refused_as_in_duckdb_and_without_a_change(connection: lance_sql.Connection, statement: str) -> None:
    before = connection.sql("SELECT * FROM t ORDER BY id").fetchall()
    for expressions in REFUSED:
        text = statement.format(expressions)
        with pytest.raises(duckdb.Error):
            native().sql(text)
        with pytest.raises(lance_sql.LanceError):
            connection.sql(text)
        assert connection.sql("SELECT * FROM t ORDER BY id").fetchall() == before, text
    assert connection.sql("SELECT count(*) FROM t.versions").fetchall() == [(1,)]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_values_that_fail_leave_the_table_as_it_was(connection: lance_sql.Connection, statement: str) -> None:
    """The check before knows no rows: only these make the expression fail."""
    text = statement.format("CAST('x' || id AS INTEGER)")
    before = connection.sql("SELECT * FROM t ORDER BY id").fetchall()
    with pytest.raises(duckdb.Error, match="Could not convert"):
        native().sql(text).fetchall()
    with pytest.raises(lance_sql.LanceError, match="Could not convert"):
        connection.sql(text)
    assert connection.sql("SELECT * FROM t ORDER BY id").fetchall() == before
    assert connection.sql("SELECT count(*) FROM t.versions").fetchall() == [(1,)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("expressions", ANSWERED)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_answered_as_in_duckdb(connection: lance_sql.Connection, statement: str, expressions: str) -> None:
    if statement.startswith("MERGE") and expressions == "*":
        expressions = "id, k"  # DuckDB 2 adds the action
    text = statement.format(expressions)
    assert sorted(connection.sql(text).fetchall()) == sorted(native().sql(text).fetchall())


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_types_that_arrow_lacks_are_returned_as_duckdb_returns_them(tmp_path, engine):
    columns = (
        "(id INT, big UHUGEINT, least HUGEINT, noon TIMETZ, every INTERVAL, bits BIT, one STRUCT(a UHUGEINT))"
    )
    insert = """INSERT INTO t VALUES (1, 340282366920938463463374607431768211455,
    '-170141183460469231731687303715884105728', '12:00:00+05:30', INTERVAL '1 month', '101', {'a': 7})
    RETURNING *, typeof(big)"""
    statements = [insert, "UPDATE t SET id = 2 RETURNING big, noon, every", "DELETE FROM t RETURNING *"]
    plain = duckdb.connect()
    with lance_sql.connect(tmp_path, engine=engine) as session:
        for connection in (plain, session):
            connection.sql(f"CREATE TABLE t {columns}")
        for statement in statements:
            expected = plain.execute(statement).fetchall()
            assert session.sql(statement).fetchall() == expected
