"""Structured streaming with Lance: every row once, even if batches are repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark import write


def run(spark: SparkSession, source: Path, target: Path, checkpoint: Path, **options: object) -> None:
    """Copy all new rows, then stop."""
    stream = spark.readStream.format("lance").options(**options).load(str(source))
    writer = stream.writeStream.format("lance").option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start(str(target)).awaitTermination()


def forget_last_batch(checkpoint: Path) -> None:
    """The state after a crash between the commit of a batch and Spark's record of it."""
    last = max(
        (file for file in (checkpoint / "commits").iterdir() if file.name.isdecimal()),
        key=lambda f: int(f.name),
    )
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def ids(path: Path) -> list[int]:
    return sorted(lance_sql.open(path).to_table()["id"].to_pylist())


def test_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    source, target, checkpoint = tmp_path / "source.lance", tmp_path / "target.lance", tmp_path / "checkpoint"
    write(spark.range(100), source)
    run(spark, source, target, checkpoint)
    assert ids(target) == list(range(100))
    write(spark.range(100, 110), source, mode="append")
    lance_sql.open(source).compact().create_index("id")
    run(spark, source, target, checkpoint)
    assert (ids(target), lance_sql.open(target).version) == (list(range(110)), 2)
    files = sorted((target / "data").iterdir())

    lance_sql.open(target).compact(target_rows=1000)  # other writers may be at work in between
    forget_last_batch(checkpoint)
    run(spark, source, target, checkpoint)
    after = lance_sql.open(target)
    assert ids(target) == list(range(110))
    assert set(files) <= set((target / "data").iterdir())
    assert len(list((target / "data").iterdir())) == len(files) + len(after.snapshot.fragments)

    lance_sql.open(source).delete("id = 5")
    with pytest.raises(StreamingQueryException, match=r"is not an append but 'delete'.*ignore_changes=true"):
        run(spark, source, target, checkpoint)
    run(spark, source, target, checkpoint, ignore_changes="true")
    assert ids(target) == list(range(110))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("trigger", ["continuous", "available now"])
def test_a_start_and_a_limit_of_versions(spark: SparkSession, tmp_path: Path, trigger: str) -> None:
    source, target = tmp_path / "source.lance", tmp_path / "target.lance"
    for start in (0, 10, 20, 30):
        lance_sql.write(
            pa.table({"id": range(start, start + 10)}), source, mode="append" if start else "create"
        )
    stream = spark.readStream.format("lance").options(start_version=2, versions_per_batch=1)
    writer = stream.load(str(source)).writeStream.format("lance")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    if trigger == "available now":
        writer.trigger(availableNow=True).start(str(target)).awaitTermination()
    else:
        query = writer.start(str(target))
        try:
            query.processAllAvailable()
        finally:
            query.stop()
    assert (ids(target), lance_sql.open(target).version) == (list(range(20, 40)), 2)


COPY = """
import sys
import lance_sql.spark
spark = lance_sql.spark.local_session(memory="1g")
source, target, checkpoint, once = sys.argv[1:]
stream = spark.readStream.format("lance").options(versions_per_batch=1).load(source)
writer = stream.writeStream.format("lance").option("checkpointLocation", checkpoint)
query = (writer.trigger(availableNow=True) if once == "once" else writer).start(target)
query.awaitTermination()
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # starts Spark three times
def test_a_job_that_is_killed_and_started_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source.lance", tmp_path / "target.lance"
    for start in range(0, 1200, 100):
        lance_sql.write(
            pa.table({"id": range(start, start + 100)}), source, mode="append" if start else "create"
        )
    command = [sys.executable, "-c", COPY, str(source), str(target), str(tmp_path / "checkpoint")]
    for versions in (3, 6):
        running = subprocess.Popen([*command, "on"], start_new_session=True, stderr=subprocess.DEVNULL)
        try:
            while len(list((target / "_versions").glob("*.manifest"))) < versions:
                assert running.poll() is None
                time.sleep(0.05)
        finally:
            # The JVM is of this new group, its Python workers end with it.
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
    subprocess.run([*command, "once"], check=True, stderr=subprocess.DEVNULL)
    assert ids(target) == list(range(1200))
    assert lance_sql.open(target).verify().num_rows == 0
