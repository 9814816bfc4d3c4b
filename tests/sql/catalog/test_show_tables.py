"""SHOW TABLES shows datasets and the engine's own tables, each once."""

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
    """Name datasets in all ways."""
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


EVERYWHERE = (
    "PRAGMA show_tables",
    "SHOW TABLES FROM main",
    "SELECT name FROM (SHOW TABLES) ORDER BY name",
    "SELECT name FROM (SHOW ALL TABLES) ORDER BY name",
    "SELECT table_name FROM information_schema.tables "
    "WHERE table_schema <> 'information_schema' ORDER BY table_name",
    "SELECT DISTINCT table_name FROM information_schema.columns "
    "WHERE table_schema <> 'information_schema' ORDER BY table_name",
)


def test_all_statements_agree_on_a_connection_of_ones_own(folder: str) -> None:
    connection = duckdb.connect()
    filled(connection)
    lance_sql.duckdb.install(connection, folder)
    used(connection.sql, folder)
    for statement in EVERYWHERE:
        assert connection.sql(statement).fetchall() == SHOWN, statement
        assert connection.execute(statement).fetchall() == SHOWN, statement
    for statement in ("SHOW ALL TABLES", "SHOW", "DESCRIBE", "PRAGMA show_tables_expanded"):
        assert sorted(row[2:3] for row in connection.sql(statement).fetchall()) == SHOWN, statement
    assert connection.sql("SHOW TABLES FROM memory").fetchall() == [("own",), ("viewed",)]
    assert connection.sql("SHOW TABLES").fetchall() == SHOWN


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_all_statements_agree_in_a_session(
    folder: str, engine: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    session = lance_sql.connect(folder, engine=engine)
    used(session.sql, folder)
    session.sql("CREATE VIEW viewed AS SELECT 1 AS one")
    shown = [("it's",), ("t",), ("viewed",)]
    for statement in EVERYWHERE:
        assert session.sql(statement).fetchall() == shown, statement
    other = tmp_path_factory.mktemp("other")
    lance_sql.write(pa.table({"a": [1]}), other / "u.lance")
    session.sql(f"ATTACH '{other}' AS ns (TYPE lance)")
    session.sql("SELECT * FROM ns.u").fetchall()
    for statement in EVERYWHERE[:3]:
        assert session.sql(statement).fetchall() == shown, statement
    for statement in EVERYWHERE[3:]:
        assert session.sql(statement).fetchall() == sorted([*shown, ("u",)]), statement
    assert session.sql("SHOW TABLES FROM ns").fetchall() == [("u",)]
    assert session.sql("SHOW TABLES FROM ns.main;").fetchall() == [("u",)]
    assert session.sql("SHOW TABLES FROM lance").fetchall() == [("it's",), ("t",)]
    for unknown in ("nosuch", "ns.nosuch", "lance.main.t"):
        with pytest.raises(lance_sql.LanceError, match="No catalog or schema"):
            session.sql(f"SHOW TABLES FROM {unknown}")
    session.sql("USE ns")
    assert ("u",) in session.sql("SHOW TABLES FROM main").fetchall()
    assert session.sql("SHOW TABLES").fetchall() == session.sql("SHOW TABLES FROM main").fetchall()


@pytest.mark.parametrize(
    "statement", ["DESCRIBE t", "desc t;", "SHOW t", "DESCRIBE '{path}'", 'DESCRIBE "t"']
)
def test_columns_that_cannot_be_null(tmp_path, engine, statement):
    with lance_sql.connect(tmp_path, engine=engine) as session:
        session.sql("CREATE TABLE t (id INT NOT NULL, name VARCHAR, other INT NOT NULL)")
        rows = session.sql(statement.format(path=tmp_path / "t.lance")).fetchall()
    assert [(row[0], row[2]) for row in rows] == [("id", "NO"), ("name", "YES"), ("other", "NO")]
