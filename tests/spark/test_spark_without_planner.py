"""A session without the jar is told so once, with the remedy; with it, nothing is said."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import lance_sql
from lance_sql.spark import planner
from lance_sql.spark.source import LanceDataSource, PlannedDataSource


@pytest.mark.parametrize("jar", ["/somewhere/lance-sql-spark.jar", None])
def test_reads_and_writes_say_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, jar: str | None
) -> None:
    monkeypatch.setattr(planner, "_told", False)
    monkeypatch.setattr(planner, "planner_jar", lambda: jar)
    lance_sql.write(pa.table({"id": [1]}), tmp_path / "t.lance")
    options = {"path": str(tmp_path / "t.lance")}
    with caplog.at_level(logging.WARNING):
        schema = PlannedDataSource(options).schema()
        PlannedDataSource(options).writer(schema, overwrite=False)
        assert not caplog.records
        for _ in range(2):
            LanceDataSource(options).schema()
            LanceDataSource(options).writer(schema, overwrite=False)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert ("install a wheel" if jar is None else f"spark.jars={jar}") in record.getMessage()


def test_the_processes_of_a_session_say_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for session in ("first", "second"):
        (tmp_path / session).mkdir()
        monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / session},/elsewhere")
        for _ in range(3):
            monkeypatch.setattr(planner, "_told", False)  # as in a new process
            planner.tell_without_planner()
    assert len(caplog.records) == 2
