"""What small statements avoid: their own databases, queries for known facts, and reading other datasets."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_sql
from lance_sql.engines.duckdb.session import DuckDBEngine
from lance_sql.scratch import scratch
from lance_sql.session.connection import Connection

STATEMENTS = [
    "CREATE TABLE other (number BIGINT DEFAULT 1 + 1, text VARCHAR NOT NULL, at_ TIMESTAMP)",
    "INSERT INTO t VALUES (7, 'seven', TIMESTAMP '2024-01-01 00:00:00')",
    "INSERT INTO t (number) VALUES (DEFAULT), ('8')",
    "UPDATE t SET number = length(text) + 1 WHERE number = 7",
    "ALTER TABLE t ADD COLUMN more DECIMAL(9, 2)",
    "DELETE FROM t WHERE number = 8",
    "SELECT * FROM t",
]


@pytest.fixture
def con(tmp_path: Path) -> Connection:
    con = lance_sql.connect(str(tmp_path))
    con.sql("CREATE TABLE t (number BIGINT, text VARCHAR, at_ TIMESTAMP)")
    return con


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_makes_a_database(
    con: Connection, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a new database takes longer than the statement")

    monkeypatch.setattr(duckdb, "connect", connect)
    con.sql(statement).fetchall()


def test_values_are_computed_by_one_query(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []
    query = DuckDBEngine.query

    def counted(engine: DuckDBEngine, text: str, *others: Any) -> Any:
        planned.append(text)
        return query(engine, text, *others)

    monkeypatch.setattr(DuckDBEngine, "query", counted)
    con.sql("INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', DEFAULT)")
    assert len(planned) == 1
    assert con.sql("SELECT number, text FROM t ORDER BY number").fetchall() == [(1, "one"), (2, "two")]


def test_a_new_dataset_does_not_look_at_others(
    con: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = []
    is_directory = os.path.isdir

    def isdir(path: Any) -> bool:
        looked_at.append(str(path))
        return is_directory(path)

    monkeypatch.setattr(os.path, "isdir", isdir)
    con.sql("CREATE TABLE new (number BIGINT)")
    assert [path for path in looked_at if "t.lance" in path] == []


def test_scratch_sessions_are_alone() -> None:
    with scratch() as one, scratch() as other:
        for number, session in enumerate((one, other)):
            session.execute(f"CREATE TEMP TABLE declared AS SELECT {number} AS number")
            session.register("batch", pa.table({"number": [number]}))
            session.execute(f"SET integer_division = {bool(number)}")
        for number, session in enumerate((one, other)):
            assert session.sql("SELECT * FROM declared, batch").fetchall() == [(number, number)]
            assert session.sql("SELECT 3 / 2").fetchall() == [(1.5 if number == 0 else 1,)]
    with scratch() as session:
        assert session.sql("SHOW TABLES").fetchall() == []
        assert session.sql("SELECT 3 / 2").fetchall() == [(1.5,)]


def test_tables_are_declared_by_several_threads_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def create(name: str) -> None:
        try:
            with lance_sql.connect(str(tmp_path)) as con:
                for number in range(5):
                    con.sql(f"CREATE TABLE {name}_{number} ({name} BIGINT, j JSON)")
                    assert con.sql(f"FROM {name}_{number}").columns == [name, "j"]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=create, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


FORKED = """
import os
from lance_sql.scratch import scratch

with scratch() as session:
    session.execute("SELECT 1")
child = os.fork()
if child == 0:
    with scratch() as session:
        os._exit(0 if session.execute("SELECT 42").fetchall() == [(42,)] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_has_a_database_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=100)
