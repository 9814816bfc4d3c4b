"""``make bench-report``: scans, filters, lookups and writes of lineitem against pylance, Parquet and Vortex.

All peers run in one process and take turns, with warm caches; a figure is the median of the rounds. pylance
and Vortex take part if ``pylance`` and ``vortex-data`` are installed. The documentation plots the JSON file
that this writes.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import random
import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pyarrow.parquet as pq

import lance_sql
from demo.data import generate
from demo.timing import timed

RESULTS: Final = Path(__file__).parent / "results" / "peers.json"
#: No strings: pyarrow cannot filter or take the string views that the Parquet file declares.
COLUMNS: Final = ["l_orderkey", "l_extendedprice", "l_shipdate"]
DAYS: Final = (datetime.date(1994, 1, 1), datetime.date(1994, 1, 31))
SQL_FILTER: Final = "l_shipdate >= DATE '1994-01-01' AND l_shipdate <= DATE '1994-01-31'"

#: Name of a case -> what does it. The last argument counts the rounds.
Actions = Mapping[str, Callable[[], Any]]


def ours(path: Path, table: pa.Table, rows: list[int]) -> Actions:
    dataset = lance_sql.open(path)
    return {
        "scan of all columns": dataset.to_table,
        "scan of three columns": lambda: dataset.to_table(columns=COLUMNS),
        "filter, one month": lambda: dataset.to_table(columns=COLUMNS, filter=SQL_FILTER),
        "take 1 row": lambda: dataset.take_positions(rows[:1], columns=COLUMNS),
        "take 1,000 rows": lambda: dataset.take_positions(rows, columns=COLUMNS),
        "write": lambda: lance_sql.write(table, path.with_suffix(".again"), mode="overwrite"),
    }


def pylance(path: Path, table: pa.Table, rows: list[int]) -> Actions:
    import lance

    dataset = lance.dataset(str(path))
    return {
        "scan of all columns": dataset.to_table,
        "scan of three columns": lambda: dataset.to_table(columns=COLUMNS),
        "filter, one month": lambda: dataset.to_table(columns=COLUMNS, filter=SQL_FILTER),
        "take 1 row": lambda: dataset.take(rows[:1], columns=COLUMNS),
        "take 1,000 rows": lambda: dataset.take(rows, columns=COLUMNS),
        "write": lambda: lance.write_dataset(table, str(path.with_suffix(".again")), mode="overwrite"),
    }


def parquet(path: Path, table: pa.Table, rows: list[int]) -> Actions:
    dataset = pads.dataset(path)
    condition = (pc.field("l_shipdate") >= DAYS[0]) & (pc.field("l_shipdate") <= DAYS[1])
    return {
        "scan of all columns": dataset.to_table,
        "scan of three columns": lambda: dataset.to_table(columns=COLUMNS),
        "filter, one month": lambda: dataset.to_table(columns=COLUMNS, filter=condition),
        "take 1 row": lambda: dataset.take(rows[:1], columns=COLUMNS),
        "take 1,000 rows": lambda: dataset.take(rows, columns=COLUMNS),
        "write": lambda: pq.write_table(table, path.with_suffix(".again")),
    }


def vortex(path: Path, table: pa.Table, rows: list[int]) -> Actions:
    import vortex as vx
    import vortex.expr as ve

    file = vx.open(str(path), memory_map=True)
    day = ve.column("l_shipdate")
    condition = ve.and_(
        *[
            day >= ve.literal(vx.date("days"), DAYS[0]),
            day <= ve.literal(vx.date("days"), DAYS[1]),
        ]
    )
    ordered = vx.array(pa.array(sorted(rows), pa.uint64()))  # it wants rows in order
    one = vx.array(pa.array(rows[:1], pa.uint64()))
    return {
        "scan of all columns": lambda: file.to_arrow().read_all(),
        "scan of three columns": lambda: file.to_arrow(COLUMNS).read_all(),
        "filter, one month": lambda: file.to_arrow(COLUMNS, expr=condition).read_all(),
        "take 1 row": lambda: file.to_arrow(COLUMNS, indices=one).read_all(),
        "take 1,000 rows": lambda: file.to_arrow(COLUMNS, indices=ordered).read_all(),
        "write": lambda: vx.io.write(table, str(path.with_suffix(".again"))),
    }


def prepared(folder: Path, scale: float) -> Iterator[tuple[str, str, Actions]]:
    """Name, version and actions of every peer that is installed, over the same rows."""
    source = folder / "parquet"
    generate(source, scale)
    table = pq.read_table(source / "lineitem.parquet")
    # Strings, not views, which no peer but Vortex writes alike.
    fields = [
        pa.field(field.name, pa.string() if pa.types.is_string_view(field.type) else field.type)
        for field in table.schema
    ]
    table = table.cast(pa.schema(fields))
    rows = random.Random(0).sample(range(table.num_rows), 1_000)
    peers: list[tuple[str, str, Callable[[Path, pa.Table, list[int]], Actions], str]] = [
        ("lance-sql", "lance-sql", ours, "ours.lance"),
        ("pylance", "pylance", pylance, "theirs.lance"),
        ("Vortex", "vortex-data", vortex, "lineitem.vortex"),
        ("Parquet (pyarrow)", "pyarrow", parquet, "lineitem.parquet"),
    ]
    for name, package, peer, file in peers:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        path = folder / file
        shutil.rmtree(path, ignore_errors=True)
        if peer is ours:
            lance_sql.write(table, path)
        elif peer is pylance:
            importlib.import_module("lance").write_dataset(table, str(path))
        elif peer is vortex:
            importlib.import_module("vortex").io.write(table, str(path))
        else:
            pq.write_table(table, path)
        yield name, version, peer(path, table, rows)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    options.add_argument("--scale", type=float, default=0.1, help="TPC-H scale factor (default 0.1)")
    options.add_argument("--rounds", type=int, default=7, help="runs of each case (default 7)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    options.add_argument("--output", type=Path, default=RESULTS, help=f"the result (default {RESULTS})")
    chosen = options.parse_args()
    folder = chosen.folder.absolute() / f"scale-{chosen.scale}"
    peers = list(prepared(folder, chosen.scale))
    cases: dict[str, dict[str, float]] = {}
    for case in peers[0][2]:
        times: dict[str, list[float]] = {name: [] for name, _, _ in peers}
        for number in range(chosen.rounds + 1):
            for name, _, actions in peers:
                seconds = timed(actions[case])[1]
                if number:  # the first run warms up
                    times[name].append(1_000 * seconds)
        cases[case] = {name: round(statistics.median(found), 3) for name, found in times.items()}
        print(case, cases[case], flush=True)
    result = {
        "data": f"TPC-H lineitem, scale factor {chosen.scale:g}",
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version for name, version, _ in peers},
        "milliseconds": cases,
    }
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
