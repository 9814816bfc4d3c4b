"""The same program on classic sessions, Spark Connect and Sail, with and without the jar: equal rows."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pytest

PROGRAM = Path(__file__).with_name("session_program.py")
KINDS = [(kind, jar) for kind in ("classic", "connect") for jar in ("with", "without")]

#: Where `make test-sail` keeps Sail and the older PySpark that it knows.
SAIL = os.environ.get("LANCE_SQL_SAIL")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # each kind of session takes a minute to start


def _found(kind: str, jar: str, folder: Path, packages: str | None = None) -> dict[str, Any]:
    folder.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_CONNECT")}
    if packages is not None:
        environment["PYTHONPATH"] = packages
    done = subprocess.run(
        [sys.executable, str(PROGRAM), kind, jar, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, f"{kind}, {jar} the planner: {done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.skipif(shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)")
@pytest.mark.usefixtures("spark")  # which says why there is no Spark
def test_a_program_finds_the_same_rows_in_every_kind_of_session(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    expected: dict[str, Any] = {}
    for kind, jar in KINDS:
        folder = tmp_path / f"{kind}_{jar}"
        found = _found(kind, jar, folder)
        plan = found.pop("plan")
        assert ("PushedFilters: [IsNotNull(id), EqualTo(id,3)]" in plan) == (jar == "with"), plan
        assert found.pop("saved", None) == ([3, 6, 6, 3, 6] if jar == "with" else None)
        expected = expected or found
        assert found == expected, f"{kind}, {jar} the planner"
        assert lance.dataset(str(folder / "t.lance")).count_rows() == 20_015
    assert expected["all"] == 20_010
    assert len(expected["one"]) == 2
    assert [row[0] for row in expected["inserted"]] == [-5, -4, -3, -2, -1]


@pytest.mark.skipif(SAIL is None, reason="`make test-sail` installs Sail with the PySpark that it supports")
@pytest.mark.usefixtures("spark")  # which says why there is no Spark
def test_a_program_finds_the_same_rows_on_sail(tmp_path: Path) -> None:
    expected = _found("classic", "without", tmp_path / "classic")
    found = _found("sail", "without", tmp_path / "sail", SAIL)
    plans = expected.pop("plan"), found.pop("plan")
    assert "PythonDataSourceExec" in plans[1], plans
    assert len(expected.pop("inserted")) == 5
    assert found == expected
    assert lance.dataset(str(tmp_path / "sail" / "t.lance")).count_rows() == 20_010
