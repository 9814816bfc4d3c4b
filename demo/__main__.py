"""``python -m demo``: the whole tour. The exit code is 1 if any answer differs from that over Parquet."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import duckdb
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import lance_sql
from demo.data import TABLES, WriteTable, generate, own_writer, size, spark_session, spark_writer
from demo.queries import (
    Engine,
    over_lance,
    over_lance_in_spark,
    over_parquet,
    query_text,
    same,
)
from demo.timing import first_and_warm, timed
from lance_sql.spark.java import java_problem

QUERY_NUMBERS = (1, 3, 6)
TAKEN_ROWS = 1000


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--folder", type=Path, default=Path(".demo"), help="where the data goes")
    chosen = options.parse_args()
    return Demo(Console(), chosen.folder.absolute(), chosen.scale).run()


class Demo:
    """The steps in order; `failures` collects every answer that was not as expected."""

    def __init__(self, console: Console, folder: Path, scale: float) -> None:
        self.console = console
        self.parquet = folder / "parquet"
        self.lance = folder / "lance"
        self.log = folder / "spark.log"
        self.scale = scale
        self.failures: list[str] = []

    def run(self) -> int:
        start = time.perf_counter()
        self.heading("TPC-H", f"scale factor {self.scale}, generated as Parquet")
        generate(self.parquet, self.scale)
        shutil.rmtree(self.lance, ignore_errors=True)
        with ExitStack() as stack:
            engines = {"DuckDB over Parquet": over_parquet(self.parquet)}
            problem = java_problem()
            if problem is None:
                self.heading("Writing", "Spark reads Parquet and writes Lance")
                spark = stack.enter_context(spark_session(self.log))
                self.write_tables(spark_writer(spark))
                engines["Spark"] = over_lance_in_spark(self.lance, spark)
            else:
                self.console.print(Panel(f"{problem}\nEverything but the Spark step runs without it."))
                self.heading("Writing", "lance_sql.write, since there is no Java for Spark")
                self.write_tables(own_writer)
            engines["DuckDB"] = over_lance(self.lance, "duckdb")
            engines["DataFusion"] = over_lance(self.lance, "datafusion")
            self.heading(
                "Queries", "first run / best of two more; each answer is compared with DuckDB's over Parquet"
            )
            self.run_queries(engines)
        self.heading("Random access", f"{TAKEN_ROWS} rows of lineitem by row id")
        self.take_rows()
        self.heading("Plan", "what Q6 reads from the dataset: its columns and its filter")
        self.show_plan()
        return self.report(time.perf_counter() - start)

    def heading(self, title: str, text: str) -> None:
        self.console.print(f"\n[bold]{title}[/bold]  {text}")

    def check(self, passed: bool, what: str) -> str:
        if not passed:
            self.failures.append(what)
        return "[green]same[/green]" if passed else "[bold red]DIFFERENT[/bold red]"

    def write_tables(self, write: WriteTable) -> None:
        shown = Table("table")
        for name in ("rows", "Parquet MB", "Lance MB", "seconds"):
            shown.add_column(name, justify="right")
        look = (
            TextColumn("{task.description:10}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*look, console=self.console, transient=True) as progress:
            task = progress.add_task("", total=len(TABLES))
            for table in TABLES:
                progress.update(task, description=table)
                source, target = self.parquet / f"{table}.parquet", self.lance / f"{table}.lance"
                _, seconds = timed(partial(write, source, target))
                sizes = (f"{size(path) / 1e6:.1f}" for path in (source, target))
                shown.add_row(table, f"{lance_sql.open(target).count_rows():,}", *sizes, f"{seconds:.2f}")
                progress.advance(task)
        self.console.print(shown)

    def run_queries(self, engines: dict[str, Engine]) -> None:
        shown = Table("query")
        for name in engines:
            shown.add_column(name, justify="right")
        for number in QUERY_NUMBERS:
            text, cells, expected = query_text(number), [], None
            for name, run in engines.items():
                answer, first, warm = first_and_warm(partial(run, text))
                times = f"{first * 1000:.0f} / {warm * 1000:.0f} ms"
                if expected is None:
                    expected = answer
                    cells.append(times)
                else:
                    verdict = self.check(same(answer, expected), f"Q{number} on {name}")
                    cells.append(f"{times} {verdict}")
            shown.add_row(f"Q{number}", *cells)
        self.console.print(shown)

    def take_rows(self) -> None:
        dataset = lance_sql.open(self.lance / "lineitem.lance")
        ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"].to_pylist()
        chosen = random.Random(1).sample(ids, TAKEN_ROWS)
        columns = ["l_orderkey", "l_linenumber", "l_comment"]
        taken, seconds = timed(lambda: dataset.take(chosen, columns=columns))
        with duckdb.connect() as connection:
            connection.register("taken", taken)
            (found,) = connection.sql(
                f"SELECT count(*) FROM taken t JOIN read_parquet('{self.parquet / 'lineitem.parquet'}') p"
                " USING (l_orderkey, l_linenumber) WHERE t.l_comment = p.l_comment"
            ).fetchall()[0]
        verdict = self.check(found == TAKEN_ROWS, f"take: {found} of {TAKEN_ROWS} rows are those of Parquet")
        self.console.print(
            f"{TAKEN_ROWS} rows, {len(columns)} columns: {seconds * 1000:.1f} ms, "
            f"{seconds / TAKEN_ROWS * 1e6:.0f} microseconds a row, {verdict}"
        )

    def show_plan(self) -> None:
        plan = str(lance_sql.connect(self.lance, engine="datafusion").sql(query_text(6)).explain())
        what_lance_does, _, _ = plan.partition("\nPlan of ")
        self.console.print(what_lance_does, highlight=False, soft_wrap=True)

    def report(self, seconds: float) -> int:
        for failure in self.failures:
            self.console.print(f"[bold red]differs:[/bold red] {failure}")
        outcome = (
            "[bold red]failed[/bold red]" if self.failures else "[bold green]all answers agree[/bold green]"
        )
        self.console.print(f"\n{outcome}, {seconds:.0f} s. The data is in {self.lance}")
        return 1 if self.failures else 0


if __name__ == "__main__":
    sys.exit(main())
