"""What the loggers under ``lance_sql`` and OpenTelemetry report."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine import events
from lance_engine.base import Event, observe
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import lance_sql
from lance_sql import otel


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_statements_scans_and_commits(tmp_path: Path, engine: str) -> None:
    seen: list[Event] = []
    stop = observe(seen.append)
    try:
        with lance_sql.connect(tmp_path, engine=engine) as session:
            session.execute("CREATE TABLE t (i INT)")
            session.execute("INSERT INTO t VALUES (1), (2), (3)")
            assert session.execute("SELECT i FROM t WHERE i > 1 ORDER BY i").fetchall() == [(2,), (3,)]
            with pytest.raises(Exception, match="missing"):
                session.execute("SELECT * FROM missing").fetchall()
    finally:
        stop()
    texts = [event.attributes["text"] for event in seen if event.kind == "statement"]
    assert texts[:3] == [
        "CREATE TABLE t (i INT)",
        "INSERT INTO t VALUES (1), (2), (3)",
        "SELECT i FROM t WHERE i > 1 ORDER BY i",
    ]
    commits = [event.attributes for event in seen if event.kind == "commit"]
    assert [(commit["version"], commit["operation"]) for commit in commits] == [
        (1, "Overwrite"),
        (2, "Append"),
    ]
    assert all(commit["path"] == str(tmp_path / "t.lance") for commit in commits)
    scan = next(event for event in seen if event.kind == "scan" and event.attributes["rows"])
    assert scan.attributes["version"] == 2
    assert scan.seconds > 0
    failed = [event for event in seen if event.error is not None]
    assert [event.kind for event in failed] == ["statement"]
    assert "missing" in str(failed[0].error)
    count = len(seen)
    lance_sql.sql(f"SELECT count(*) FROM '{tmp_path / 't.lance'}'").fetchall()
    assert len(seen) == count  # nothing after the end


def test_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "lance_sql"):
        lance_sql.write(pa.table({"i": [1]}), tmp_path / "t.lance")
    (line,) = caplog.messages
    assert line.startswith(
        f"commit path='{tmp_path}/t.lance' version=1 operation='Overwrite' attempts=1 seconds="
    )
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "lance_sql"):
        lance_sql.sql(f"SELECT * FROM '{tmp_path / 't.lance'}'").fetchall()
    assert [record.name for record in caplog.records] == ["lance_sql.statement", "lance_sql.scan"]


def test_nothing_is_collected_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_observers", [])
    monkeypatch.setattr(events, "Event", None)  # would fail if one were made
    lance_sql.write(pa.table({"i": [1]}), tmp_path / "t.lance")
    assert lance_sql.sql(f"SELECT * FROM '{tmp_path / 't.lance'}'").fetchall() == [(1,)]


def test_credentials_do_not_appear(tmp_path: Path) -> None:
    seen: list[Event] = []
    stop = observe(seen.append)
    try:
        with lance_sql.connect(tmp_path) as session:
            session.execute(
                "CREATE SECRET s (TYPE s3, KEY_ID 'AKIAEXAMPLE', SECRET 'hush-hush', REGION 'eu')"
            )
            with pytest.raises(Exception, match="s3://"):
                session.execute(
                    "CREATE SECRET s (TYPE s3, SECRET 'hush-hush') FROM 's3://b?X-Amz-Signature=hush-hush'"
                )
    except Exception:  # the engine may refuse the second for another reason
        pass
    finally:
        stop()
    assert seen
    assert "hush-hush" not in str(seen)


def test_other_writers_are_conflicts(tmp_path: Path) -> None:
    seen: list[Event] = []
    stop = observe(seen.append)
    try:
        first = lance_sql.write(pa.table({"i": range(10), "v": range(10)}), tmp_path / "t.lance")
        second = lance_sql.open(first.uri)
        first.update({"v": "v + 1"}, where="i = 3")
        second.update({"v": "v + 10"}, where="i = 3")
    finally:
        stop()
    conflict = next(event.attributes for event in seen if event.kind == "conflict")
    assert conflict["version"] == 1
    assert "version 2" in str(conflict["reason"]) or "concurrent" in str(conflict["reason"])


def test_open_telemetry(tmp_path: Path) -> None:
    spans, metrics = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([metrics])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    stop = otel.instrument(tracers, meters)
    try:
        lance_sql.write(pa.table({"i": range(1000)}), tmp_path / "t.lance")
        lance_sql.sql(f"SELECT * FROM '{tmp_path / 't.lance'}' ").fetchall()
        with pytest.raises(lance_sql.errors.LanceError):
            lance_sql.sql("SELECT * FROM 'missing.lance'").fetchall()
    finally:
        stop()
    finished = spans.get_finished_spans()
    assert [span.name for span in finished if span.status.is_ok] == [
        "lance_sql.commit", "lance_sql.statement", "lance_sql.scan",
    ]  # fmt: skip
    assert finished[-1].name == "lance_sql.statement"
    assert not finished[-1].status.is_ok
    scan = next(span for span in finished if span.name == "lance_sql.scan")
    assert scan.attributes is not None
    assert scan.attributes["lance_sql.rows"] == 1000
    assert scan.start_time is not None
    assert scan.end_time is not None
    assert scan.end_time > scan.start_time
    data = metrics.get_metrics_data()
    assert data is not None
    measured = {
        metric.name: sum(getattr(point, "value", 0) for point in metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert measured["lance_sql.scan.rows"] == 1000
    assert measured["lance_sql.commits"] == 1
    assert measured["lance_sql.statements"] == 2


def test_observers_that_fail_change_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: Event) -> None:
        raise OSError(event.kind)

    stop = observe(fails)
    try:
        lance_sql.write(pa.table({"i": [1]}), tmp_path / "t.lance")
        lance_sql.write(pa.table({"i": [2]}), tmp_path / "t.lance", "append")
        with pytest.raises(lance_sql.errors.LanceError):
            lance_sql.sql("SELECT * FROM 'missing.lance'").fetchall()
        assert lance_sql.sql(f"SELECT i FROM '{tmp_path / 't.lance'}' ORDER BY i").fetchall() == [(1,), (2,)]
    finally:
        stop()
    assert {message for message in caplog.messages if "observer" in message} == {
        "An observer of events failed"
    }
