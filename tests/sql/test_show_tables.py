"""SHOW TABLES shows datasets, and what the engine has of its own, each by its name and once."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_sql

SHOWN = [("it's",), ("own",), ("t",), ("temporary",), ("viewed",)]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for name in ("t", "it's"):
        lance_sql.write(pa.table({"a": [1, 2]}), tmp_path / f"{name}.lance")
    return str(tmp_path)


def filled(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE own (i INTEGER)")
    connection.execute("CREATE TEMP TABLE temporary (i INTEGER)")
    connection.execute("CREATE VIEW viewed AS SELECT 1 AS one")


def used(run: object, folder: str) -> None:
    """Name datasets in every way."""
    for name in ("t", "t AT (VERSION => 1)", f"'{folder}/t.lance'", "t.versions"):
        run(f"SELECT count(*) FROM {name}").fetchall()  # type: ignore[operator]


def test_on_a_connection_of_ones_own(folder: str) -> None:
    connection = duckdb.connect()
    filled(connection)
    lance_sql.duckdb.install(connection, folder)
    assert connection.sql("SHOW TABLES").fetchall() == SHOWN
    used(connection.sql, folder)
    assert connection.sql("SHOW TABLES").fetchall() == SHOWN
    assert connection.execute("show tables;").fetchall() == SHOWN
    connection.execute("DROP VIEW viewed")
    assert connection.sql("SHOW TABLES").fetchall() == SHOWN[:-1]


def test_in_a_session_around_it(folder: str) -> None:
    connection = duckdb.connect()
    filled(connection)
    session = lance_sql.connect(folder, engine=connection)
    used(session.sql, folder)
    assert session.sql("SHOW TABLES").fetchall() == SHOWN


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_in_a_session(folder: str, engine: str) -> None:
    session = lance_sql.connect(folder, engine=engine)
    used(session.sql, folder)
    session.sql("CREATE VIEW viewed AS SELECT 1 AS one")
    assert session.sql("SHOW TABLES").fetchall() == [("it's",), ("t",), ("viewed",)]


def test_a_view_keeps_its_dataset_when_another_is_dropped(folder: str) -> None:
    connection = duckdb.connect()
    lance_sql.duckdb.install(connection, folder)
    connection.execute("CREATE TEMP VIEW over AS SELECT * FROM t; CREATE VIEW other AS SELECT 1")
    before = connection.execute("SELECT count(*) FROM over").fetchone()[0]
    connection.execute("DROP VIEW other")
    lance_sql.open(f"{folder}/t.lance").delete("true")
    assert before > 0
    assert connection.execute("SELECT count(*) FROM over").fetchone() == (0,)
