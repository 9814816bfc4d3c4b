"""PEP 249: what tools that use Python's database API expect of a connection."""

from __future__ import annotations

import datetime

import lance
import pyarrow as pa
import pytest

import lance_sql
from lance_sql import dbapi


@pytest.fixture(params=["duckdb", "datafusion"])
def connection(request, tmp_path):
    lance_sql.write(pa.table({"id": [1, 2], "name": ["a", "b"]}), tmp_path / "t.lance")
    with dbapi.connect(tmp_path, request.param) as made:
        yield made


def test_the_module():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 1, "qmark")
    for name in ("InterfaceError", "DatabaseError"):
        assert issubclass(getattr(dbapi, name), dbapi.Error)
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError"):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)
    assert dbapi.Date(2026, 1, 31) == datetime.date(2026, 1, 31)
    assert isinstance(dbapi.TimestampFromTicks(0), datetime.datetime)


def test_rows_and_their_description(connection):
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.execute("SELECT id, name FROM t ORDER BY id") is cursor
    assert [column[0] for column in cursor.description] == ["id", "name"]
    assert [column[1] for column in cursor.description] == [dbapi.NUMBER, dbapi.STRING]
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.rowcount == 2
    assert cursor.fetchone() == (1, "a")
    assert cursor.fetchmany() == [(2, "b")]
    assert cursor.fetchmany(5) == []
    assert cursor.fetchone() is None
    assert list(connection.execute("SELECT id FROM t ORDER BY id")) == [(1,), (2,)]


def test_parameters_by_place_and_by_name(connection):
    cursor = connection.cursor()
    assert cursor.execute("SELECT name FROM t WHERE id = ?", (2,)).fetchall() == [("b",)]
    assert cursor.execute("SELECT name FROM t WHERE id = $id", {"id": 1}).fetchall() == [("a",)]
    named = "SELECT CAST(id AS INT), ':id' FROM t WHERE id = :id AND name = :name"
    assert cursor.execute(named, {"id": 1, "name": "a"}).fetchall() == [(1, ":id")]


def test_changes_wait_for_commit(connection, tmp_path):
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(3, "c"), (4, "d"), (5, "e")])
    assert cursor.rowcount == 3
    assert cursor.description is None
    cursor.execute("UPDATE t SET name = 'x' WHERE id > ?", [3])
    assert cursor.rowcount == 2
    other = connection.cursor()
    assert other.execute("SELECT count(*) FROM t").fetchone() == (5,)
    assert lance.dataset(tmp_path / "t.lance").count_rows() == 2
    connection.commit()
    assert lance.dataset(tmp_path / "t.lance").version == 2
    assert lance.dataset(tmp_path / "t.lance").count_rows() == 5
    cursor.execute("DELETE FROM t WHERE id = 1")
    connection.rollback()
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (5,)
    connection.commit()
    connection.rollback()


def test_returning(connection):
    cursor = connection.cursor()
    cursor.execute("DELETE FROM t WHERE id = 1 RETURNING name")
    assert cursor.fetchall() == [("a",)]
    assert cursor.rowcount == 1


def test_the_block_commits_or_rolls_back(tmp_path):
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    with dbapi.connect(tmp_path) as connection:
        connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(dbapi.ProgrammingError), dbapi.connect(tmp_path) as connection:
        connection.execute("INSERT INTO t VALUES (3); SELEC 1")
    assert lance.dataset(tmp_path / "t.lance").to_table()["id"].to_pylist() == [1, 2]


def test_autocommit(tmp_path):
    connection = dbapi.connect(tmp_path, autocommit=True)
    connection.execute("CREATE TABLE t (id INT)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.cursor().executemany("INSERT INTO t VALUES (?)", [(2,), (3,)])
    assert lance.dataset(tmp_path / "t.lance").version == 3  # many are one version
    connection.close()


def test_errors(connection):
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELECT * FROM nothing")
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELEC 1")
    with pytest.raises(dbapi.NotSupportedError, match="cannot be part of a transaction"):
        cursor.execute("INSERT INTO t VALUES (9, 'z'); OPTIMIZE t")
    connection.rollback()
    with pytest.raises(dbapi.InterfaceError, match="run a query first"):
        cursor.fetchone()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="The cursor is closed"):
        cursor.execute("SELECT 1")
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="The connection is closed"):
        connection.cursor()


def test_a_lost_race_is_an_operational_error(tmp_path):
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    with dbapi.connect(tmp_path) as one, dbapi.connect(tmp_path, autocommit=True) as other:
        one.execute("UPDATE t SET id = 2")
        other.execute("UPDATE t SET id = 3")
        with pytest.raises(dbapi.OperationalError, match="version 2"):
            one.commit()


def test_pandas_reads_it(connection):
    import pandas as pd

    with pytest.warns(UserWarning, match="DBAPI2"):
        frame = pd.read_sql("SELECT id FROM t ORDER BY id", connection)
    assert frame["id"].tolist() == [1, 2]


def test_what_describes_a_table(connection):
    cursor = connection.cursor()
    assert len(cursor.execute("DESCRIBE t").fetchall()) == 2
    assert len(cursor.execute("SUMMARIZE t").fetchall()) == 2
