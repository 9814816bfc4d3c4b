"""``python -m benchmarks.spark_tpch``: all TPC-H queries in Spark, over its own Parquet and over Lance.

Lance is read twice, by path with ``format("lance")`` and as tables of a catalog. Spark writes both formats.
With ``--sail``, Sail answers (`make test-sail` installs it) and not Spark: it knows no catalog of ours.
Every query runs once to warm up, when the answers are compared, and then `--repetitions` times over each kind
of table in turn. Times are medians; the geometric means are of the ratios to Parquet, of the clock and of the
time of processors, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import atexit
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import track
from rich.table import Table

import lance_sql.spark
from benchmarks.processor_time import processor_seconds
from benchmarks.spark import session
from demo.data import TABLES, generate
from demo.queries import Rows, query_text, same
from demo.timing import timed
from lance_sql.spark.planner import planner_jar

CATALOG = "tpch"
KINDS = ("Parquet", "Lance", "Lance catalog")


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.spark_tpch", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    options.add_argument("--master", default="local[2]", help="Spark's master (default local[2])")
    options.add_argument("--sail", action="store_true", help="ask Sail in this process, not Spark")
    options.add_argument("--repetitions", type=int, default=3, help="timed runs of everything (default 3)")
    options.add_argument("--queries", type=int, nargs="+", default=range(1, 23), help="their numbers")
    chosen = options.parse_args()
    folder = chosen.folder.absolute() / f"scale-{chosen.scale}"
    generate(folder / "parquet", chosen.scale)
    new_session = sail_sessions() if chosen.sail else session(chosen.master).newSession
    spark = new_session()
    lance_sql.spark.register(spark)
    at = folder / ("sail-tpch" if chosen.sail else "spark-tpch")
    try:
        prepare(spark, folder / "parquet", at)
        kinds = sessions(new_session, at, KINDS[: 2 if chosen.sail or planner_jar() is None else 3])
        return run(kinds, chosen.queries, chosen.repetitions)
    finally:
        spark.stop()


def prepare(spark: SparkSession, source: Path, folder: Path) -> None:
    """Let Spark write all tables in both formats, unless an earlier run finished them."""
    done = folder / ".complete"
    if done.exists():
        return
    for table in TABLES:
        frame = spark.read.parquet(str(source / f"{table}.parquet"))
        frame.write.mode("overwrite").parquet(str(folder / f"{table}.parquet"))
        frame.write.format("lance").mode("overwrite").save(str(folder / f"{table}.lance"))
    done.touch()


def sail_sessions() -> Callable[[], SparkSession]:
    """Creates sessions with a Sail server that runs until this process ends."""
    from pysail.spark import SparkConnectServer

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    atexit.register(server.stop)
    _, port = server.listening_address
    return lambda: SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()


def sessions(
    new_session: Callable[[], SparkSession], folder: Path, names: Sequence[str]
) -> dict[str, SparkSession]:
    """A session for each kind of tables, in which the queries find them by their names."""
    kinds = {kind: new_session() for kind in names}
    for kind, at in kinds.items():
        lance_sql.spark.register(at)
        if kind == "Lance catalog":
            at.conf.set(f"spark.sql.catalog.{CATALOG}", "lancesql.spark.LanceCatalog")
            at.conf.set(f"spark.sql.catalog.{CATALOG}.path", str(folder))
            at.sql(f"USE {CATALOG}")
            continue
        name = kind.lower()
        for table in TABLES:
            frame = at.read.format(name).load(str(folder / f"{table}.{name}"))
            frame.createOrReplaceTempView(table)
    return kinds


def answer(spark: SparkSession, number: int) -> Rows:
    return [tuple(row) for row in spark.sql(query_text(number)).collect()]


def run(kinds: dict[str, SparkSession], numbers: Sequence[int], repetitions: int) -> int:
    console = Console()
    shown = Table("query", title="TPC-H, seconds")
    for kind in kinds:
        shown.add_column(kind, justify="right")
    for kind in list(kinds)[1:]:
        shown.add_column(f"{kind} / Parquet", justify="right")
    clocks: dict[str, list[float]] = {kind: [] for kind in kinds}
    processors: dict[str, list[float]] = {kind: [] for kind in kinds}
    wrong: list[str] = []
    for number in track(numbers, "timing", console=console, transient=True):
        right = answer(kinds["Parquet"], number)
        wrong += [
            f"Q{number} {kind}" for kind in list(kinds)[1:] if not same(answer(kinds[kind], number), right)
        ]
        seconds: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for _ in range(repetitions):
            for kind, at in kinds.items():
                before = processor_seconds(os.getpid())
                _, clock = timed(partial(answer, at, number))
                seconds[kind].append((clock, processor_seconds(os.getpid()) - before))
        for kind, runs in seconds.items():
            clocks[kind].append(statistics.median(clock for clock, _ in runs))
            processors[kind].append(statistics.median(taken for _, taken in runs))
        medians = [clocks[kind][-1] for kind in kinds]
        ratios = [f"{after / medians[0]:.2f}" for after in medians[1:]]
        shown.add_row(f"Q{number}", *(f"{median:.2f}" for median in medians), *ratios)
    console.print(shown)
    for kind in list(kinds)[1:]:
        clock, processor = (ratio(times[kind], times["Parquet"]) for times in (clocks, processors))
        console.print(f"{kind} / Parquet, geometric mean: clock {clock:.2f}, processors {processor:.2f}")
    for name in wrong:
        console.print(f"[bold red]different answers:[/bold red] {name}")
    console.print("answers are " + ("[red]DIFFERENT[/red]" if wrong else "equal"))
    return 1 if wrong else 0


def ratio(after: Sequence[float], before: Sequence[float]) -> float:
    """The geometric mean of the ratios."""
    # A time of zero is shorter than the resolution of the processor clock.
    return statistics.geometric_mean(max(a, 0.01) / max(b, 0.01) for a, b in zip(after, before, strict=True))


if __name__ == "__main__":
    sys.exit(main())
