"""After an error in DuckDB itself, which then runs no more statements, errors say to connect again."""

import pytest

import lance_sql
from lance_sql.errors import LanceError

#: DuckDB 2.0 fails when it converts these rows, of which one is null, into a struct with other names.
ROWS = "SELECT row({'b': 2}) AS v UNION ALL SELECT NULL"


@pytest.fixture
def failed(tmp_path):
    """A session whose DuckDB has failed."""
    with lance_sql.connect(tmp_path) as session:
        session.execute("CREATE TABLE t (v STRUCT(a STRUCT(b INTEGER)))")
        session.execute("INSERT INTO t VALUES ({'a': {'b': 1}})")
        session.execute(f"COPY ({ROWS}) TO '{tmp_path}/rows.parquet'")
        error = failure(session, f"COPY t FROM '{tmp_path}/rows.parquet'")
        if error is None:
            pytest.skip("This version of DuckDB does not fail")
        assert "error in itself" in str(error)
        assert "connect again" in str(error.remedy)
        yield session


def failure(session, statement):
    """The error of the session; None if it succeeds."""
    try:
        session.execute(statement).fetchall()
    except LanceError as error:
        return error
    return None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1",
        "FROM t",
        "SHOW TABLES",
        "INSERT INTO t VALUES (NULL)",
        "UPDATE t SET v = NULL",
        "DELETE FROM t WHERE v IS NOT NULL",
        "MERGE INTO t USING (SELECT 1 AS k) ON v.a.b = k WHEN MATCHED THEN DELETE",
        "ALTER TABLE t ADD COLUMN w INTEGER",
        "CREATE TABLE other AS SELECT 1 AS x",
        "BEGIN",
        "SET threads = 2",
    ],
)
def test_statements_after_it_say_what_to_do(failed, statement):
    error = failure(failed, statement)
    assert error is None or "connect again" in str(error.remedy)


def test_datasets_are_intact(failed, tmp_path):
    failed.close()
    with lance_sql.connect(tmp_path) as session:
        assert session.execute("FROM t").fetchall() == [({"a": {"b": 1}},)]
        session.execute("INSERT INTO t VALUES (NULL)")
        assert session.execute("SELECT count(*) FROM t").fetchone() == (2,)
