"""DuckDB opens the first database while modules are imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from lance_sql.engines.duckdb import opening

FIRST_STATEMENTS = """
import sys, duckdb, lance_sql
begun, real = [], duckdb.connect
def connect(**options):
    begun.append(options)
    return real(**options)
duckdb.connect = connect
assert lance_sql.sql("SELECT 7").fetchall() == [(7,)]
print(len(begun))
with lance_sql.connect() as session:
    assert session.sql("SELECT 8").fetchall() == [(8,)]
print(len(begun))
"""


def test_no_database_is_opened_twice() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_STATEMENTS], capture_output=True, text=True, timeout=100, check=True
    )
    assert run.stdout.split() == ["1", "2"]


def test_a_session_takes_the_database_that_was_opened_ahead() -> None:
    opening.open_ahead()
    opening.open_ahead()
    first = opening.opening()()
    second = opening.opening()()
    first.execute("CREATE TABLE t AS SELECT 1 AS x")
    assert first.sql("SELECT x FROM t").fetchall() == [(1,)]
    assert second.sql("SHOW TABLES").fetchall() == []
    first.close()
    second.close()


def test_a_child_does_not_take_the_database_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    opening.open_ahead()
    parents = opening._ahead[0][1].result()
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    connection = opening.opening()()
    assert connection is not parents
    connection.close()
    parents.close()


def test_without_duckdb_nothing_is_opened_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "duckdb")
    opening.open_ahead()
    assert not opening._ahead
