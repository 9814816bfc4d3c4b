"""Full text search and building an inverted index, against pylance.

Run it with ``python -m benchmarks.text --rows 1000000``. Peers take turns, so that what else the machine does
meets both; times are medians in milliseconds, of searches that ran before.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
from lance.query import MatchQuery

import lance_sql

WORDS = 50_000
LENGTH = 20


def documents(rows: int) -> pa.Table:
    """Texts with word frequencies like those of natural languages."""
    random = np.random.default_rng(0)
    words = np.array([f"w{number:x}" for number in range(WORDS)], dtype=object)
    weights = 1 / (np.arange(WORDS) + 10)
    chosen = random.choice(WORDS, size=(rows, LENGTH), p=weights / weights.sum())
    return pa.table({"id": np.arange(rows), "text": [" ".join(words[row]) for row in chosen]})


def median(work: Callable[[int], object], repeats: int) -> list[float]:
    """Milliseconds of each run."""
    times = []
    for number in range(repeats):
        begin = time.perf_counter()
        work(number)
        times.append(1000 * (time.perf_counter() - begin))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    random = np.random.default_rng(1)
    pairs = [" ".join(f"w{n:x}" for n in random.integers(0, 2000, 2)) for _ in range(given.repeats)]
    with tempfile.TemporaryDirectory() as folder:
        table = documents(given.rows)
        paths = {name: str(Path(folder, name)) for name in ("ours", "pylance")}
        for path in paths.values():
            lance_sql.write(table, path)
        begin = time.perf_counter()
        ours = lance_sql.open(paths["ours"]).create_index("text", "INVERTED", stem=False)
        ours_built = time.perf_counter() - begin
        begin = time.perf_counter()
        lance.dataset(paths["pylance"]).create_scalar_index("text", "INVERTED", stem=False)
        theirs_built = time.perf_counter() - begin
        theirs = lance.dataset(paths["pylance"])
        print(f"building: ours {ours_built:.1f} s, pylance {theirs_built:.1f} s")

        def search_ours(number: int) -> object:
            return ours.search(pairs[number], "text", 10, columns=["id"])

        def search_theirs(number: int) -> object:
            query = MatchQuery(pairs[number], "text")
            return theirs.to_table(full_text_query=query, limit=10, columns=["id", "_score"])

        times: dict[str, list[float]] = {"ours": [], "pylance": []}
        for number in range(given.rounds + 1):
            found = {"ours": median(search_ours, len(pairs)), "pylance": median(search_theirs, len(pairs))}
            for name, values in found.items():
                if number:  # the first round reads the files
                    times[name] += values
        for name, values in times.items():
            print(f"two words, {name}: {statistics.median(values):.2f} ms")
        print(f"pylance / ours: {statistics.median(times['pylance']) / statistics.median(times['ours']):.2f}")


if __name__ == "__main__":
    main()
