"""A Spark application whose write job is disturbed: ``faulty_spark_job.py MASTER DISTURBANCE PATH``.

Four tasks append the numbers up to `ROWS` to the dataset at PATH. What happens to the second task once it has
finished a file:

- ``twice``: its first attempt raises, and Python dies in its second
- ``executor``: the JVM of its first attempt is killed
- ``hangs``: all its attempts stand still
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lance_sql.spark.options import Options
from lance_sql.spark.source import LanceDataSource
from lance_sql.spark.writer import LanceWriter

ROWS = 40_000
TASKS = 4
ROWS_PER_FILE = 1000
DISTURBED_TASK = 1
BATCHES_BEFORE = 15


def parent_of(process: int) -> int:
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(fields["PPid"])


def kill_executor() -> None:
    """Kill the JVM that this worker belongs to: the parent of the daemon that forks workers."""
    executor = parent_of(os.getppid())
    if Path(f"/proc/{executor}/comm").read_text().strip() != "java":
        raise AssertionError(f"process {executor} is not an executor")
    os.kill(executor, signal.SIGKILL)


def disturb(kind: str, attempt: int) -> None:
    if kind == "twice" and attempt == 0:
        raise RuntimeError("the first attempt fails")
    if kind == "twice" and attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "executor" and attempt == 0:
        kill_executor()
    if kind == "hangs":
        time.sleep(240)


class DisturbedWriter(LanceWriter):
    def __init__(self, options: Options, schema: StructType, overwrite: bool, kind: str) -> None:
        super().__init__(options, schema, overwrite)
        self._kind = kind

    def write(self, iterator: Iterator[pa.RecordBatch]) -> object:
        return super().write(self._disturbed(iterator))

    def _disturbed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            if number == BATCHES_BEFORE and context.partitionId() == DISTURBED_TASK:
                disturb(self._kind, context.attemptNumber())
            yield batch


class DisturbedSource(LanceDataSource):
    @classmethod
    def name(cls) -> str:
        return "disturbed"

    def writer(self, schema: StructType, overwrite: bool) -> LanceWriter:
        options = dict(self.options)
        kind = options.pop("kind")
        return DisturbedWriter(Options.parse(options), schema, overwrite, kind)


def main(master: str, kind: str, path: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # where a local cluster listens
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.task.maxFailures": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
    }
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.dataSource.register(DisturbedSource)
    numbers = spark.range(0, ROWS, numPartitions=TASKS)
    writer = numbers.write.format("disturbed").option("max_rows_per_file", ROWS_PER_FILE).option("kind", kind)
    writer.mode("append").save(path)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
