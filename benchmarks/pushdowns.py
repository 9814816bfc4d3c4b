"""``python -m benchmarks.pushdowns``: what each pushdown saves in TPC-H and ClickBench, on both engines.

Each query runs with all rules, without each of them, without any, and over Parquet, by turns in one process
with warm caches. Times are the least processor time of some runs, which other programs hardly change.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import clickbench, paired
from demo.data import TABLES, generate, own_writer
from demo.queries import query_text
from lance_sql.pushdown_settings import ALL, DISABLED, RULES

ENGINES: Final = ("duckdb", "datafusion")
EVERYTHING, NOTHING, PARQUET = "all rules", "no rules", "Parquet"
#: A rule makes a query faster if it takes this many times as long without it.
FASTER: Final = 1.2


class Suite(NamedTuple):
    """Queries by name over the Parquet files and the datasets of some tables in two folders."""

    name: str
    parquet: Path
    lance: Path
    tables: list[str]
    queries: Mapping[str, str]


def tpch(folder: Path, scale: float) -> Suite:
    """The 22 queries of TPC-H."""
    place = folder.absolute() / f"scale-{scale}"
    generate(place / "parquet", scale)
    for table in TABLES:
        own_writer(place / "parquet" / f"{table}.parquet", place / "lance" / f"{table}.lance")
    queries = {f"Q{number}": query_text(number) for number in range(1, 23)}
    return Suite(f"TPC-H, scale {scale:g}", place / "parquet", place / "lance", [*TABLES], queries)


def hits(folder: Path, rows: int) -> Suite:
    """The 43 queries of ClickBench."""
    place = clickbench.prepared(folder, rows)
    queries = {f"Q{number}": text for number, text in enumerate(clickbench.queries())}
    return Suite(f"ClickBench, {rows:,} rows", place, place, ["hits"], queries)


def runs_of(suite: Suite, engine: str) -> Iterator[tuple[str, Callable[[str], object]]]:
    """By name, the ways in which a query of a suite runs."""
    yield PARQUET, paired.over_parquet(engine, suite.parquet, suite.tables)
    disabled = {EVERYTHING: "", NOTHING: ALL, **{rule: rule for rule in RULES}}
    for name, rules in disabled.items():
        yield name, paired.over_lance(engine, suite.lance, f"SET {DISABLED} = '{rules}'")


def measured(suite: Suite, engine: str, repetitions: int) -> dict[str, dict[str, float]]:
    """The processor time of each query, by the way in which it runs."""
    runs = dict(runs_of(suite, engine))
    found: dict[str, dict[str, float]] = {name: {} for name in runs}
    for query, text in track(suite.queries.items(), f"{suite.name}, {engine}", transient=True):
        times: dict[str, list[float]] = {name: [] for name in runs}
        for repetition in range(repetitions + 1):
            for name, run in runs.items():
                begin = time.process_time()
                run(text)
                if repetition:  # the first run fills caches
                    times[name].append(time.process_time() - begin)
        for name, seconds in times.items():
            found[name][query] = min(seconds)
    return found


def row(rule: str, found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What a rule saves: the mean over all queries, and the queries that it makes a fifth faster."""
    everything, without = found[EVERYTHING], found[rule]
    ratios = {query: without[query] / everything[query] for query in everything}
    faster = sorted((query for query in ratios if ratios[query] >= FASTER), key=lambda query: -ratios[query])
    shown = ", ".join(f"{query} ({ratios[query]:.1f})" for query in faster[:6])
    more = f", {len(faster) - 6} more" if len(faster) > 6 else ""
    return [rule, f"{statistics.geometric_mean(ratios.values()):.2f}", shown + more or "-"]


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.pushdowns", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--rows", type=int, default=500_000, help="of ClickBench's table (default 500,000)")
    options.add_argument("--engine", choices=ENGINES, action="append", help="one of the engines only")
    options.add_argument("--repetitions", type=int, default=3, help="timed runs of everything (default 3)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    chosen = options.parse_args()
    console = Console(width=140)
    for suite in (tpch(chosen.folder, chosen.scale), hits(chosen.folder, chosen.rows)):
        for engine in chosen.engine or ENGINES:
            found = measured(suite, engine, chosen.repetitions)
            shown = Table(
                "without",
                "times the time (geometric mean)",
                "queries that take at least a fifth longer (times the time)",
                title=f"{suite.name}, {engine}",
            )
            for name in (*RULES, NOTHING):
                shown.add_row(*row(name, found))
            console.print(shown)
            for name in (EVERYTHING, NOTHING):
                ratios = [found[name][query] / found[PARQUET][query] for query in suite.queries]
                mean = statistics.geometric_mean(ratios)
                console.print(f"With {name}: {mean:.3f} of the time over Parquet (geometric mean)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
