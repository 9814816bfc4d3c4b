"""Executors that start and stop: speculative attempts, dynamic allocation and decommissioned workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import lance
import pytest
from standalone_cluster import Cluster, standalone_cluster

import lance_sql

ROWS, TASKS = 8000, 8
DECOMMISSION = ("spark.decommission.enabled=true", "spark.worker.decommission.enabled=true")

# Every attempt leaves a file; the second task may hang, or all of them may be slow.
PROGRAM = """
import json, os, sys, time
from pathlib import Path
from pyspark import TaskContext
from pyspark.sql import SparkSession
from benchmarks.spark import session
import lance_sql.spark

master, path, attempts, settings, hanging, seconds = sys.argv[1:]
for name, value in json.loads(settings).items():
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--conf {name}={value} " + os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    )

def noted(batches):
    task = TaskContext.get()
    name = f"{task.partitionId()}-{task.attemptNumber()}-{os.environ['SPARK_LOCAL_IP']}"
    Path(attempts, name).touch()
    hangs = task.partitionId() == 1 and task.attemptNumber() == 0 and hanging == "True"
    time.sleep(300 if hangs else float(seconds))
    yield from batches

def executors():
    return spark.sparkContext._jsc.sc().getExecutorIds().size()

spark = session(master)
try:
    rows = spark.range(0, ROWS, 1, TASKS).mapInArrow(noted, "id bigint")
    rows.write.format("lance").save(path)
    frame = spark.read.format("lance").option("partitions", TASKS).load(path)
    first = executors()
    idle = time.monotonic() + 90
    dynamic = "spark.dynamicAllocation.enabled" in json.loads(settings)
    while dynamic and executors() and time.monotonic() < idle:
        time.sleep(0.5)
    left = executors()
    sums = frame.where("id >= 10").selectExpr("count(*)", "sum(id)").first()
    print(json.dumps({"executors": [first, left], "sums": list(sums)}))
finally:
    spark.stop()
""".replace("ROWS, 1", f"{ROWS}, 1").replace("TASKS", str(TASKS))


class Job:
    """A job in a process of its own, which writes a dataset and reads it."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        settings: dict[str, Any],
        *,
        hanging: bool = False,
        seconds: float = 0,
    ) -> None:
        self.path = folder / "t.lance"
        self._attempts = folder / "attempts"
        self._attempts.mkdir()
        program = folder / "program.py"
        program.write_text(PROGRAM)
        given = [json.dumps(settings), str(hanging), str(seconds)]
        self._process = subprocess.Popen(
            [sys.executable, str(program), cluster.master, str(self.path), str(self._attempts), *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )

    def attempts(self) -> set[tuple[int, int, str]]:
        """Task, attempt and host of all attempts that began."""
        parts = (file.name.split("-") for file in self._attempts.iterdir())
        return {(int(task), int(attempt), host) for task, attempt, host in parts}

    def wait_for(self, attempts: int) -> None:
        while len(self.attempts()) < attempts:
            assert self._process.poll() is None, self._process.communicate()[1][-4000:]
            time.sleep(0.1)

    def result(self) -> dict[str, Any]:
        """The output of the program; checks that every row is there, and no file of another attempt."""
        output, errors = self._process.communicate()
        assert self._process.returncode == 0, errors[-4000:]
        written = lance_sql.open(self.path)
        assert sorted(written.to_table()["id"].to_pylist()) == list(range(ROWS))
        assert lance.dataset(self.path).count_rows() == ROWS
        named = {file.path for fragment in written.snapshot.fragments for file in fragment.files}
        assert {file.name for file in (self.path / "data").iterdir()} == named
        found: dict[str, Any] = json.loads(output.splitlines()[-1])
        assert found["sums"] == [ROWS - 10, sum(range(10, ROWS))]
        return found


pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.usefixtures("spark")]


def test_speculative_attempts(tmp_path: Path) -> None:
    """Spark starts them on another host."""
    settings = {
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.5",
    }
    with standalone_cluster(tmp_path, ("127.0.0.1", "127.0.0.2")) as cluster:
        job = Job(cluster, tmp_path, settings, hanging=True)
        job.result()
    attempts = [(attempt, host) for task, attempt, host in job.attempts() if task == 1]
    assert sorted(attempt for attempt, _ in attempts) == [0, 1]
    assert len({host for _, host in attempts}) == 2


def test_dynamic_allocation(tmp_path: Path) -> None:
    """All executors leave after the job that wrote; new ones read."""
    settings = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.maxExecutors": "2",
        "spark.dynamicAllocation.executorIdleTimeout": "2s",
        "spark.dynamicAllocation.shuffleTracking.timeout": "3s",
    }
    with standalone_cluster(tmp_path) as cluster:
        found = Job(cluster, tmp_path, settings).result()
    assert found["executors"][0] >= 1
    assert found["executors"][1] == 0


def test_a_decommissioned_worker(tmp_path: Path) -> None:
    """The tasks that have not begun run on the other one."""
    settings = dict(setting.split("=") for setting in DECOMMISSION)
    with standalone_cluster(tmp_path, ("127.0.0.1", "127.0.0.2"), DECOMMISSION) as cluster:
        job = Job(cluster, tmp_path, settings, seconds=2)
        job.wait_for(3)  # both workers have begun
        os.kill(cluster.workers[1].pid, signal.SIGPWR)
        job.result()
    hosts = [host for _, _, host in job.attempts()]
    assert hosts.count("127.0.0.1") > hosts.count("127.0.0.2")
