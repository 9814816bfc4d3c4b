"""Spark's Python workers: their connection with the JVM, and how many batches they hand over."""

from __future__ import annotations

import pickle
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.progress import Reporter
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StructField, StructType

import lance_sql
from lance_sql.spark import packed
from lance_sql.spark.cluster import run_tasks
from lance_sql.spark.kept import open_kept
from lance_sql.spark.options import Options
from lance_sql.spark.packed import gathered
from lance_sql.spark.source import LanceDataSource
from lance_sql.spark.versions import worker_socket
from lance_sql.spark.workers import SentFunction, answer_at_once, has_one_processor

SCHEMA = StructType([StructField("a", LongType())])


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        client.connect(server.getsockname())
        accepted, _ = server.accept()
        with accepted:
            yield accepted


def in_worker(sock: socket.socket, call: Callable[[], Any]) -> Any:
    """The result of a call that Spark's daemon makes in a worker."""
    names: dict[str, Any] = {}
    daemon = "def worker(sock, authenticated, call):\n    return call()\n"
    exec(compile(daemon, "/site-packages/pyspark/daemon.py", "exec"), names)
    return names["worker"](sock, True, call)


def waits(sock: socket.socket) -> bool:
    return not sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("kind", ["reader", "writer", "source"])
def test_whatever_is_unpickled_in_a_worker_makes_its_connection_quick(
    kind: str, tmp_path: Path, connection: socket.socket
) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    source = LanceDataSource({"path": path})
    sent = {
        "reader": source.reader(SCHEMA),
        "writer": source.writer(SCHEMA, overwrite=False),
        "source": source,
    }[kind]
    data = pickle.dumps(sent)
    assert waits(connection)
    got = in_worker(connection, lambda: pickle.loads(data))
    assert not waits(connection)
    assert vars(got).keys() == vars(sent).keys()


def test_functions_that_are_sent_make_the_connection_quick(connection: socket.socket) -> None:
    data = pickle.dumps(SentFunction(len))
    assert waits(connection)
    got = in_worker(connection, lambda: pickle.loads(data))
    assert not waits(connection)
    assert got("four") == 4


def test_tasks_of_an_operation_are_sent_so(spark: SparkSession) -> None:
    def told(_: int) -> int:
        connection = worker_socket()
        assert connection is not None
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert 0 not in run_tasks(spark, [1, 2], told, Reporter(None), "asking", [1, 1])


def test_a_task_of_one_processor_decodes_on_its_own_thread(spark: SparkSession) -> None:
    def told(threads: int | None) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            if threads is None:
                patch.delenv("LANCE_SQL_THREADS", raising=False)
            else:
                patch.setenv("LANCE_SQL_THREADS", str(threads))
            return has_one_processor()

    assert not has_one_processor()
    asked = spark.sparkContext.parallelize([None, 1, 3], 1).map(told).collect()
    assert asked == [True, False, False]


def test_a_version_is_kept_while_it_is_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    options = Options.parse({"path": path, "version": "1"})
    first = open_kept(options)
    assert open_kept(options) is first
    other = Options.parse({"path": path, "version": "1", "storage_options": '{"a": "b"}'})
    assert open_kept(other) is not first
    dataset = lance_sql.open(path).create_index("a")
    newest = open_kept(Options.parse({"path": path}))
    assert (newest.version, first.version) == (dataset.version, 1)
    assert open_kept(options) is first

    shutil.rmtree(path)
    lance_sql.write(pa.table({"a": [3, 4]}), path)
    again = open_kept(options)
    assert again is not first
    assert again.scan().to_table()["a"].to_pylist() == [3, 4]


def test_few_versions_are_kept(tmp_path: Path) -> None:
    asked = []
    for number in range(12):
        path = str(tmp_path / f"{number}.lance")
        lance_sql.write(pa.table({"a": [number]}), path)
        asked.append(Options.parse({"path": path}))
    versions = [open_kept(options) for options in asked]
    assert open_kept(asked[11]) is versions[11]
    assert open_kept(asked[0]) is not versions[0]


def test_other_processes_and_connections_are_left_alone(connection: socket.socket) -> None:
    answer_at_once()
    assert worker_socket() is None
    here, there = socket.socketpair()  # as Spark uses them where told to
    with here, there:
        in_worker(here, answer_at_once)
    assert waits(connection)


def test_the_workers_of_this_spark_are_known(spark: SparkSession) -> None:
    def told(_: int) -> int:
        connection = worker_socket()
        assert connection is not None
        answer_at_once()
        return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    assert spark.sparkContext.parallelize([0], 1).map(told).collect() != [0]


def batch(start: int, rows: int) -> pa.RecordBatch:
    schema = pa.schema({"a": pa.int64(), "t": pa.string()})
    return pa.RecordBatch.from_pydict({"a": range(start, start + rows), "t": ["x"] * rows}, schema)


def test_small_batches_are_handed_over_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LONGEST_WAIT", 1e9)
    sizes = [1, 8000, 500, 8192, 0, 3, 20_000, 7]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    got = list(gathered(map(batch, starts, sizes)))
    assert [part.num_rows for part in got] == [8501, 8192, 20_003, 7]
    assert [value for part in got for value in part.column(0).to_pylist()] == list(range(sum(sizes)))
    assert list(gathered([])) == []


def test_few_rows_do_not_wait_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_LONGEST_WAIT", -1.0)
    assert [part.num_rows for part in gathered(batch(i, 1) for i in range(3))] == [1, 1, 1]
