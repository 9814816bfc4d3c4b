"""``python -m benchmarks.tpch``: times of scans, lookups and all TPC-H queries, over Parquet and over Lance.

Every time is the best of three runs in one process with warm caches; on a busy machine trust the ratios only.
pyarrow scans the Parquet files, DuckDB and DataFusion query them with readers of their own.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import datafusion
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track
from rich.table import Table

import lance_sql
from demo.data import TABLES, generate, own_writer
from demo.queries import Engine, over_lance, over_parquet, query_text, same
from demo.timing import timed

REPETITIONS = 3
# No strings: pyarrow cannot filter or take the string views that the Parquet files declare.
COLUMNS = ["l_orderkey", "l_extendedprice", "l_shipdate"]
FILTER = "l_shipdate >= DATE '1998-09-01' AND l_quantity < 10"

# name, over Parquet, over Lance
Case = tuple[str, Callable[[], object], Callable[[], object]]


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest run."""
    return min(timed(action)[1] for _ in range(REPETITIONS))


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    chosen = options.parse_args()
    folder = chosen.folder.absolute() / f"scale-{chosen.scale}"
    parquet, lance = folder / "parquet", folder / "lance"
    generate(parquet, chosen.scale)
    for table in TABLES:
        own_writer(parquet / f"{table}.parquet", lance / f"{table}.lance")

    console = Console()
    shown = Table("work", title=f"TPC-H, scale factor {chosen.scale}, milliseconds")
    for name in ("Parquet", "Lance", "ratio"):
        shown.add_column(name, justify="right")
    wrong: list[str] = []
    cases = [*scan_cases(parquet, lance), *query_cases(parquet, lance, wrong)]
    for name, over_files, over_datasets in track(cases, "timing", console=console, transient=True):
        before, after = best(over_files), best(over_datasets)
        shown.add_row(name, f"{before * 1000:.1f}", f"{after * 1000:.1f}", f"{after / before:.2f}")
    console.print(shown)
    for name in wrong:
        console.print(f"[bold red]different answers:[/bold red] {name}")
    return 1 if wrong else 0


def scan_cases(parquet: Path, lance: Path) -> list[Case]:
    """Work without a SQL engine; pyarrow reads Parquet."""
    file = parquet / "lineitem.parquet"
    dataset = lance_sql.open(lance / "lineitem.lance")
    places = random.Random(1).sample(range(dataset.count_rows()), 1000)
    ids = dataset.scan(columns=["_rowid"]).to_table()["_rowid"].take(places).to_pylist()
    shipdate, quantity = pads.field("l_shipdate"), pads.field("l_quantity")
    recent = (shipdate >= datetime.date(1998, 9, 1)) & (quantity < Decimal("10.00"))
    return [
        ("scan all columns", lambda: pq.read_table(file), lambda: dataset.scan().to_table()),
        (
            f"scan {len(COLUMNS)} columns",
            lambda: pq.read_table(file, columns=COLUMNS),
            lambda: dataset.scan(columns=COLUMNS).to_table(),
        ),
        (
            "scan with a selective filter",
            lambda: pads.dataset(file).to_table(columns=COLUMNS, filter=recent),
            lambda: dataset.scan(columns=COLUMNS, filter=FILTER).to_table(),
        ),
        (
            "1000 random rows",
            lambda: pads.dataset(file).take(places, columns=COLUMNS),
            lambda: dataset.take(ids, columns=COLUMNS),
        ),
    ]


def query_cases(parquet: Path, lance: Path, wrong: list[str]) -> list[Case]:
    """All TPC-H queries on both engines; the names of those with differing answers go to `wrong`."""
    pairs = {
        "DuckDB": (over_parquet(parquet), over_lance(lance, "duckdb")),
        "DataFusion": (datafusion_over_parquet(parquet), over_lance(lance, "datafusion")),
    }
    cases: list[Case] = []
    for engine, (over_files, over_datasets) in pairs.items():
        for number in range(1, 23):
            text, name = query_text(number), f"Q{number} {engine}"
            if not same(over_datasets(text), over_files(text)):
                wrong.append(name)
            cases.append((name, partial(over_files, text), partial(over_datasets, text)))
    return cases


def datafusion_over_parquet(folder: Path) -> Engine:
    context = datafusion.SessionContext()
    for table in TABLES:
        context.register_parquet(table, str(folder / f"{table}.parquet"))
    return lambda text: [tuple(row.values()) for row in context.sql(text).to_pylist()]


if __name__ == "__main__":
    sys.exit(main())
