"""``python -m benchmarks.spark``: Spark writes and reads TPC-H lineitem as Parquet and as Lance.

Writes alternate, reads too, so that both formats meet the same machine; medians and the median of the
ratios are printed. The frames that are read are made before the clock runs, as in a session that asks more
than one question. Both copies are compared by checksums of every column, and the largest Python worker is
weighed. ``--master 'local-cluster[2,1,2048]'`` gives Spark two executors of their own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions
from rich.console import Console

import lance_sql.spark
from benchmarks.worker_memory import WorkerMemory
from demo.data import generate, size
from demo.timing import timed
from lance_sql.spark.planner import planner_jar

MONTH = "l_shipdate >= DATE '1995-03-01' AND l_shipdate < DATE '1995-04-01'"
TWO_COLUMNS = ["l_orderkey", "l_extendedprice"]


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    options.add_argument("--input", type=Path, help="a lineitem.parquet, instead of one made for --scale")
    options.add_argument("--master", default="local[2]", help="Spark's master (default local[2])")
    options.add_argument("--repetitions", type=int, default=3, help="runs of everything (default 3)")
    chosen = options.parse_args()
    folder = chosen.folder.absolute() / f"scale-{chosen.scale}"
    source = chosen.input
    if source is None:
        generate(folder / "parquet", chosen.scale)
        source = folder / "parquet" / "lineitem.parquet"
    spark = session(chosen.master)
    try:
        return Bench(spark, source.absolute(), folder / "spark", chosen.repetitions).run()
    finally:
        spark.stop()


def session(master: str) -> SparkSession:
    """A session with the given master on the loopback interface."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("lance-sql bench")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.executor.memory": "2g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
    }
    jar = planner_jar()
    if jar is not None:
        settings["spark.jars"] = str(jar)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    lance_sql.spark.register(spark)
    return spark


class Bench:
    def __init__(self, spark: SparkSession, source: Path, folder: Path, repetitions: int) -> None:
        self.spark = spark
        self.source = spark.read.parquet(str(source))
        self.parquet = folder / "lineitem.parquet"
        self.lance = folder / "lineitem.lance"
        self.repetitions = repetitions
        self.console = Console()

    def run(self) -> int:
        self.console.print(f"{self.source.count():,} rows of lineitem")
        writers, readers = WorkerMemory(), WorkerMemory()
        self.alternate(
            "write all columns",
            lambda: self.source.write.mode("overwrite").parquet(str(self.parquet)),
            self.write_lance,
            writers,
        )
        parquet = self.spark.read.parquet(str(self.parquet))
        stored = self.spark.read.format("lance").load(str(self.lance))
        whole = self.alternate("read all columns", partial(drain, parquet), partial(drain, stored), readers)
        month = self.alternate(
            "read two columns of a month",
            lambda: drain(parquet.where(MONTH).select(*TWO_COLUMNS)),
            lambda: drain(stored.where(MONTH).select(*TWO_COLUMNS)),
            readers,
        )
        self.console.print(f"two columns of a month: {whole / month:.1f} times faster than everything")
        self.console.print(f"bytes: Parquet {size(self.parquet):,}, Lance {size(self.lance):,}")
        for what, memory in (("writing", writers), ("reading", readers)):
            self.console.print(f"largest Python worker {what}: {memory.largest / (1 << 20):.0f} MiB")
        equal = checksums(stored) == checksums(self.source)
        self.console.print("checksums of all columns are " + ("equal" if equal else "[red]DIFFERENT[/red]"))
        return 0 if equal else 1

    def alternate(
        self,
        name: str,
        over_parquet: Callable[[], object],
        over_lance: Callable[[], object],
        memory: WorkerMemory,
    ) -> float:
        """Run both in turn and print the medians; the median seconds over Lance."""
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(self.repetitions):
            for work, times in zip((over_parquet, over_lance), seconds, strict=True):
                times.append(timed(work)[1])
            memory.look()
        before, after = (statistics.median(times) for times in seconds)
        ratio = statistics.median(one / other for one, other in zip(*seconds, strict=True))
        self.console.print(
            f"{name}: Parquet {before:.2f} s, Lance {after:.2f} s, {ratio:.2f} times the speed"
        )
        return after

    def write_lance(self) -> None:
        shutil.rmtree(self.lance, ignore_errors=True)
        self.source.write.format("lance").mode("append").save(str(self.lance))


def drain(frame: DataFrame) -> None:
    """Compute all rows and drop them."""
    frame.write.format("noop").mode("overwrite").save()


def checksums(frame: DataFrame) -> tuple[object, ...]:
    """Rows, values and a sum of hashes of every column."""
    sums = [functions.sum(functions.xxhash64(name).cast("decimal(38,0)")) for name in frame.columns]
    row = frame.select(
        functions.count("*"), *(functions.count(name) for name in frame.columns), *sums
    ).first()
    return tuple(row or ())


if __name__ == "__main__":
    sys.exit(main())
