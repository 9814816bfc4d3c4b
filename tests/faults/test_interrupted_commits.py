"""COMMIT of a transaction over two datasets, stopped at each storage call by Ctrl-C and by kill -9."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lance_engine.io.local import LocalStore
from lance_engine.table import commit as commit_module

import lance_sql

STATEMENTS = [
    "INSERT INTO a VALUES (2, 20)",
    "DELETE FROM a WHERE id = 1",
    "UPDATE b SET v = 11 WHERE id = 1",
    "INSERT INTO b VALUES (3, 30)",
]
BEFORE = {"a": [(1, 10)], "b": [(1, 10)]}
AFTER = {"a": [(2, 20)], "b": [(1, 11), (3, 30)]}

CHILD = """
import json, os, signal, sys
import duckdb, sqlglot
import lance_sql
import lance_sql.engines.duckdb.session, lance_engine.operations.delete, lance_engine.operations.update
from lance_engine.io.local import LocalStore

statements = json.loads(sys.argv[2])
for folder in sys.argv[3:]:
    name, moment, number = os.path.basename(folder).split(".")
    left = int(number)
    pid = os.fork()
    if not pid:
        session = lance_sql.connect(folder)
        for statement in ["BEGIN", *statements]:
            session.sql(statement)

        def dying(original):
            def call(*arguments, **options):
                global left
                left -= 1
                if not left and moment == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                try:
                    return original(*arguments, **options)
                finally:
                    if not left:
                        os.kill(os.getpid(), signal.SIGKILL)
            return call

        for method in ("put", "put_if_absent", "delete"):
            setattr(LocalStore, method, dying(getattr(LocalStore, method)))
        session.sql("COMMIT")
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def made(folder: Path) -> Path:
    folder.mkdir()
    for name in BEFORE:
        lance_sql.write({"id": [1], "v": [10]}, folder / f"{name}.lance")
    return folder


def check(folder: Path) -> str:
    """Each dataset is as before or as after, whole, the first one not later than the second; which ones."""
    found = ""
    for name in BEFORE:
        dataset = lance_sql.open(folder / f"{name}.lance")
        rows = sorted(map(tuple, (row.values() for row in dataset.scan().to_table().to_pylist())))
        assert rows in (BEFORE[name], AFTER[name])
        assert dataset.verify(values=True).num_rows == 0
        found += "+" if rows == AFTER[name] else "-"
        assert dataset.delete("id = 1").count_rows("id = 1") == 0  # the next writer carries on
    assert found != "-+"
    return found


@pytest.mark.parametrize("moment", ["before", "after"])
def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    states = []
    for number in range(1, 40):
        folder = made(tmp_path / f"f{number}")
        left = number

        def interrupted(original: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal left
                left -= 1
                if not left and moment == "before":
                    raise KeyboardInterrupt
                result = original(*arguments, **options)
                if not left:
                    raise KeyboardInterrupt
                return result

            return call

        with lance_sql.connect(folder) as session, monkeypatch.context() as patch:
            session.sql("CREATE TABLE own (x INT)")
            for statement in ["BEGIN", *STATEMENTS]:
                session.sql(statement)
            for method in ("put", "put_if_absent", "delete"):
                patch.setattr(LocalStore, method, interrupted(getattr(LocalStore, method)))
            patch.setattr(commit_module, "write_hint", interrupted(commit_module.write_hint))
            try:
                session.sql("COMMIT")
            except KeyboardInterrupt as error:
                (note,) = error.__notes__
            else:
                break
            finally:
                patch.undo()
            assert not session.in_transaction
            session.sql("INSERT INTO own VALUES (1)")
        found = check(folder)
        states.append(found)
        for name, state in zip(BEFORE, found, strict=True):
            is_named = f"{name}.lance as version 2" in note or note.endswith(f"{name}.lance")
            assert is_named or state == "-", note
            assert f"{name}.lance as version 2" not in note or state == "+", note
    assert len(states) > 4
    assert set(states) == {"--", "+-", "++"}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_kill(tmp_path: Path) -> None:
    folders = [
        made(tmp_path / f"f.{moment}.{number}") for moment in ("before", "after") for number in range(1, 6)
    ]
    command = [sys.executable, "-W", "ignore", "-c", CHILD, "", json.dumps(STATEMENTS), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    ends = [int(line) for line in done.stdout.split()]
    assert -9 in ends
    assert set(ends) <= {0, -9}, done.stderr
    states = [check(folder) for folder, end in zip(folders, ends, strict=True) if end == -9]
    assert {"--", "+-"} <= set(states)
    assert all(check(folder) == "++" for folder, end in zip(folders, ends, strict=True) if not end)
