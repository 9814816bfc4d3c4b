"""If tasks, executors or jobs fail while writing, every row is written once, or none."""

from __future__ import annotations

import datetime
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import faulty_spark_job as job
import lance
import pyarrow as pa
import pytest
from pyspark import InheritableThread
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark

LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,1024]"


def command(master: str, disturbance: str, path: Path) -> list[str]:
    return [sys.executable, job.__file__, master, disturbance, str(path)]


def files(path: Path) -> set[str]:
    return {file.name for file in (path / "data").glob("*")}


def named_files(dataset: lance_sql.Dataset) -> set[str]:
    return {file.path for fragment in dataset.snapshot.fragments for file in fragment.files}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "disturbance"),
    [
        (LOCAL, "twice"),
        pytest.param(CLUSTER, "executor", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_attempts_that_fail(tmp_path: Path, master: str, disturbance: str) -> None:
    path = tmp_path / "t.lance"
    done = subprocess.run(command(master, disturbance, path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    written = lance_sql.open(path)
    assert written.version == 1
    assert sorted(written.to_table()["id"].to_pylist()) == list(range(job.ROWS))
    assert lance.dataset(path).count_rows() == job.ROWS
    assert files(path) == named_files(written)


@pytest.mark.slow
def test_a_killed_driver_leaves_what_cleanup_removes(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    before = lance_sql.write(pa.table({"id": [-1]}), path)
    running = subprocess.Popen(
        command(LOCAL, "hangs", path), start_new_session=True, stderr=subprocess.DEVNULL
    )
    try:
        while len(files(path)) < 1 + job.ROWS // job.ROWS_PER_FILE // 2:
            assert running.poll() is None
            time.sleep(0.05)
    finally:
        os.killpg(running.pid, signal.SIGKILL)  # the JVM is of this new group, its Python workers end with it
        running.wait()
    after = lance_sql.open(path)
    assert (after.version, after.count_rows()) == (1, 1)
    assert files(path) > named_files(before)
    after.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert files(path) == named_files(before)


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Writers are handed ten rows at a time."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("mode", ["append", pytest.param("overwrite", marks=pytest.mark.slow)])
def test_a_cancelled_job(spark: SparkSession, tmp_path: Path, mode: lance_sql.spark.saving.SaveMode) -> None:
    path = tmp_path / "t.lance"
    before = lance_sql.write(pa.table({"id": [-1]}), path)
    # Spark hands rows on in blocks of 64 KiB: thousands of rows make the first one.
    slow = "if(java_method('java.lang.Thread', 'sleep', 1L) IS NULL, id, id) AS id"
    endless = spark.range(0, 1_000_000, numPartitions=2).selectExpr(slow)
    failures: list[BaseException] = []

    def run() -> None:
        spark.sparkContext.setJobGroup("cancelled", "a job to cancel", interruptOnCancel=True)
        try:
            lance_sql.spark.write(endless, path, mode=mode, max_rows_per_file=5)
        except BaseException as error:
            failures.append(error)

    thread = InheritableThread(target=run, session=spark)
    thread.start()
    try:
        while len(files(path)) < 4 and thread.is_alive():
            time.sleep(0.05)
    finally:
        spark.sparkContext.cancelJobGroup("cancelled")
        thread.join()
    (failure,) = failures
    assert "cancelled" in str(failure)
    after = lance_sql.open(path)
    assert (after.version, after.to_table()["id"].to_pylist()) == (1, [-1])
    assert files(path) == named_files(before)
    lance_sql.spark.write(spark.range(3), path, mode="append")
    assert lance.dataset(path).to_table()["id"].to_pylist() == [-1, 0, 1, 2]


def test_two_jobs_append_while_one_compacts(spark: SparkSession, tmp_path: Path) -> None:
    """Every version holds each job's rows once or not at all; the last holds all of them."""
    path, size, jobs = tmp_path / "t.lance", 200, range(6)
    lance_sql.spark.write(spark.range(0, size, numPartitions=4), path)
    failures: list[BaseException] = []

    def append(numbers: Iterable[int]) -> None:
        for number in numbers:
            rows = spark.range((number + 1) * size, (number + 2) * size, numPartitions=2)
            lance_sql.spark.write(rows, path, mode="append")

    def compact() -> None:
        for _ in jobs[::2]:
            lance_sql.spark.compact(spark, path, target_rows=10_000)

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    works = [lambda: append(jobs[::2]), lambda: append(jobs[1::2]), compact]
    threads = [InheritableThread(target=guarded, args=(work,), session=spark) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [str(failure) for failure in failures]
    latest = lance_sql.open(path)
    for version in range(1, latest.version + 1):
        rows = Counter(lance_sql.open(path, version).to_table()["id"].to_pylist())
        assert set(rows.values()) == {1}
        assert set(Counter(number // size for number in rows).values()) == {size}
    assert sorted(lance.dataset(path).to_table()["id"].to_pylist()) == list(range((len(jobs) + 1) * size))
    assert latest.verify(values=True).num_rows == 0
    operations = Counter(latest.inspect.transactions()["operation"].to_pylist())
    assert operations["append"] == len(jobs)
    assert operations["rewrite"] >= 1
