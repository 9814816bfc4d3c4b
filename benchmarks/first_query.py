"""What the first query of a new process, and a first command, cost compared with DuckDB over Parquet.

Each program runs in new processes, by turns. Processor time is that of the user and of the system; of both
times the best run counts, because other work on the machine only makes them longer.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import lance_sql

_WHERE = "WHERE number >= 7 AND number < 9"
_QUERY = "import {}; {}.sql(\"SELECT number, word FROM '{}' " + _WHERE + '").{}'
_COMMAND = "from lance_sql.cli import main; main()"
#: Compiling a module takes longer than importing it; installed packages are compiled already.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def programs(folder: Path) -> dict[str, tuple[list[str], list[str]]]:
    """What is compared: the arguments of Python for DuckDB, and for lance-sql."""
    parquet, lance = folder / "first.parquet", folder / "first.lance"
    rows = pa.table({"number": range(40_000), "word": [f"w{number % 11}" for number in range(40_000)]})
    pq.write_table(rows, parquet)
    lance_sql.write(rows, lance, mode="overwrite")

    def query(module: str, path: Path, then: str) -> list[str]:
        return ["-c", _QUERY.format(module, module, path, then)]

    return {
        "filtered query, tuples": (
            query("duckdb", parquet, "fetchall()"),
            query("lance_sql", lance, "fetchall()"),
        ),
        "filtered query, Arrow": (
            query("duckdb", parquet, "to_arrow_table()"),
            query("lance_sql", lance, "arrow()"),
        ),
        'lance-sql "SELECT 1"': (
            ["-c", "import duckdb; duckdb.sql('SELECT 1').show()"],
            ["-c", _COMMAND, "SELECT 1"],
        ),
    }


def times(arguments: list[str]) -> tuple[float, float]:
    """Milliseconds of processor time, and elapsed, of a new Python."""
    begin, before = time.perf_counter(), _spent()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=_ENVIRONMENT, check=True)
    return (_spent() - before) * 1000, (time.perf_counter() - begin) * 1000


def _spent() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.first_query", description=__doc__)
    options.add_argument("--runs", type=int, default=20, help="processes of each (default 20)")
    options.add_argument("--folder", type=Path, default=Path("build/benchmarks"), help="where the data goes")
    chosen = options.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    shown = Table("", "DuckDB, ms", "lance-sql, ms", "ratio", "elapsed", "elapsed", "ratio")
    for name, (theirs, ours) in programs(chosen.folder).items():
        times(theirs), times(ours)  # the first run compiles
        measured = [(times(theirs), times(ours)) for _ in range(chosen.runs)]
        cells: list[str] = []
        for kind in range(2):
            first, second = (min(run[who][kind] for run in measured) for who in range(2))
            cells += [f"{first:.0f}", f"{second:.0f}", f"{second / first:.2f}"]
        shown.add_row(name, *cells)
    Console().print(shown)


if __name__ == "__main__":
    main()
