"""A session without the jar is told so once, with the remedy; with it, nothing is said."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_sql
from lance_sql.spark import planner, session
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
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path / name},/elsewhere")
        for _ in range(3):
            monkeypatch.setattr(planner, "_told", False)  # as in a new process
            planner.tell_without_planner()
    assert len(caplog.records) == 2


class FakeSpark:
    """A classic session whose JVM has only the classes in `found`; it notes what it is asked to register."""

    def __init__(self, *found: str) -> None:
        self.environment: dict[str, str] = {}
        self.registered: list[tuple[type, dict[str, str]]] = []
        loader = SimpleNamespace(getResource=lambda name: name if name in found else None)
        utils = SimpleNamespace(Utils=SimpleNamespace(getContextOrSparkClassLoader=lambda: loader))
        spark = SimpleNamespace(util=utils)
        self._jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(spark=spark)))
        self._jsparkSession = object()
        self.sparkContext = SimpleNamespace(environment=self.environment)
        self.dataSource = SimpleNamespace(register=self._register)

    def _register(self, source: type) -> None:
        self.registered.append((source, dict(self.environment)))


@pytest.mark.parametrize("has_jar", [False, True])
def test_registering_says_so_once_before_spark_refuses_a_write(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, has_jar: bool
) -> None:
    """Spark refuses save() in its default mode by itself: no data source of ours is asked."""
    monkeypatch.setattr(planner, "_told", False)
    spark: Any = FakeSpark(*(["lancesql/spark/LanceProvider.class"] if has_jar else []))
    for _ in range(2):
        session.register(spark)
    assert len(caplog.records) == (0 if has_jar else 1)
    assert all("lance_sql.spark.write has all modes" in record.getMessage() for record in caplog.records)
    # Its Python processes do not say it again.
    for _, environment in spark.registered:
        with monkeypatch.context() as process:
            process.setattr(planner, "_told", False)
            for name, value in environment.items():
                process.setenv(name, value)
            planner.tell_without_planner()
    assert len(spark.registered) == 4
    assert len(caplog.records) == (4 if has_jar else 1)


def test_the_jar_has_the_class_by_which_it_is_found() -> None:
    jar = planner.planner_jar()
    if jar is None:
        pytest.skip("this build has no jar")
    assert f"{planner.PROVIDER.replace('.', '/')}.class" in zipfile.ZipFile(jar).namelist()
