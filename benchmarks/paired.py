"""Queries over Parquet and over Lance by turns, in one process with warm caches, and a table of ratios.

Times are medians; on a busy machine the ratios say more than the milliseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import datafusion
import duckdb
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lance_sql

#: Rows of a row group, as DuckDB writes them: its threads read row groups side by side.
ROW_GROUP: Final = 122_880

Query = Callable[[str], pa.Table]


def arguments(program: str, description: str | None, rows: int) -> argparse.ArgumentParser:
    """The options that benchmarks of paired queries share."""
    options = argparse.ArgumentParser(prog=f"python -m benchmarks.{program}", description=description)
    options.add_argument("--rows", type=int, default=rows, help=f"of the table (default {rows:,})")
    options.add_argument("--engine", choices=["duckdb", "datafusion"], default="duckdb")
    options.add_argument("--repetitions", type=int, default=3, help="timed runs of everything (default 3)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    return options


def over_parquet(engine: str, folder: Path, tables: list[str]) -> Query:
    """Queries over the Parquet files of a folder, by the engine's own reader."""
    if engine == "datafusion":
        context = _context()
        for table in tables:
            context.register_parquet(table, str(folder / f"{table}.parquet"))
        return lambda text: context.sql(text).to_arrow_table()
    connection = duckdb.connect()
    for table in tables:
        connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder / table}.parquet')")
    return lambda text: connection.sql(text).to_arrow_table()


def over_lance(engine: str, folder: Path, before: str | None = None) -> Query:
    """Queries over the datasets of a folder, in a session in which the statement `before` ran."""
    own = _context() if engine == "datafusion" else None
    connection = lance_sql.connect(folder) if own is None else lance_sql.connect(folder, datafusion=own)
    if before is not None:
        connection.sql(before)
    return lambda text: connection.sql(text).arrow()


def _context() -> datafusion.SessionContext:
    """Names keep their case, as in DuckDB."""
    return datafusion.SessionContext(
        datafusion.SessionConfig().set("datafusion.sql_parser.enable_ident_normalization", "false")
    )


def same_size(left: pa.Table, right: pa.Table) -> bool:
    """Whether two answers have the same number of rows; rows with equal counts can come in any order."""
    return bool(left.num_rows == right.num_rows and left.num_columns == right.num_columns)


def compare(title: str, queries: Mapping[str, str], kinds: Mapping[str, Query], repetitions: int) -> int:
    """Time the queries, by name, of two kinds, and print the table; 1 if answers differ in size."""
    shown = Table("query", *kinds, "ratio", "of processor time", title=f"{title}, ms")
    medians, ratios, wrong = [], [], []
    for name, text in queries.items():
        answers = [run(text) for run in kinds.values()]
        if not same_size(*answers):
            wrong.append(name)
        times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for _ in range(repetitions):
            for kind, run in kinds.items():
                begin, spent = time.perf_counter(), time.process_time()
                run(text)
                times[kind].append((time.perf_counter() - begin, time.process_time() - spent))
        (wall, cpu), (our_wall, our_cpu) = (
            [statistics.median(column) for column in zip(*measured, strict=True)]
            for measured in times.values()
        )
        medians.append((wall, our_wall))
        ratios.append((our_wall / wall, our_cpu / cpu))
        shown.add_row(
            name,
            f"{wall * 1000:.1f}",
            f"{our_wall * 1000:.1f}",
            *(f"{ratio:.2f}" for ratio in ratios[-1]),
        )
    shown.add_section()
    first, second = (sum(column) for column in zip(*medians, strict=True))
    shown.add_row("sum", f"{first * 1000:.1f}", f"{second * 1000:.1f}", f"{second / first:.2f}", "")
    means = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
    shown.add_row("geometric mean", "", "", *(f"{mean:.2f}" for mean in means))
    console = Console()
    console.print(shown)
    for name in wrong:
        console.print(f"[bold red]different answers:[/bold red] {name}")
    return 1 if wrong else 0
