"""Vector search against pylance, and exact search against faiss where that is installed.

Run it with ``python -m benchmarks.vectors --rows 1000000``. Peers take turns, so that what else the machine
does meets all of them; times are medians in milliseconds.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import lance_sql

DIM = 128
K = 10
Search = Callable[[int], list[int]]

#: Kind, options of the build and of the search.
INDICES: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = (
    ("IVF_PQ", {"num_sub_vectors": 16}, {"nprobes": 10, "refine_factor": 10}),
    ("IVF_SQ", {}, {"nprobes": 10}),
    ("IVF_HNSW_SQ", {"num_partitions": 1}, {"nprobes": 1, "ef": 100}),
)


def vectors(rows: int, seed: int) -> npt.NDArray[np.float32]:
    """Points around a few hundred centres, the same for all seeds."""
    centres = np.random.default_rng(0).normal(size=(300, DIM))
    random = np.random.default_rng(seed)
    return (centres[random.integers(0, 300, rows)] + random.normal(size=(rows, DIM))).astype(np.float32)


def medians(searches: Mapping[str, Search], count: int) -> dict[str, tuple[float, list[list[int]]]]:
    """Per peer the median time of a search, and what each search found."""
    seconds: dict[str, list[float]] = {name: [] for name in searches}
    found: dict[str, list[list[int]]] = {name: [] for name in searches}
    for number in range(count):
        for name, search in searches.items():
            begin = time.perf_counter()
            rows = search(number)
            seconds[name].append(time.perf_counter() - begin)
            found[name].append(rows)
    return {name: (1000 * statistics.median(seconds[name]), found[name]) for name in searches}


def exact(path: str, values: npt.NDArray[np.float32], queries: npt.NDArray[np.float32]) -> list[list[int]]:
    """Compare exact searches; what they find."""
    lance = importlib.import_module("lance")
    ours, theirs = lance_sql.open(path), lance.dataset(path)

    def by_pylance(number: int, **options: Any) -> list[int]:
        nearest = {"column": "v", "q": queries[number], "k": K, "use_index": False}
        table = theirs.to_table(columns=["id", "_distance"], nearest=nearest, **options)
        return list(table["id"].to_pylist())

    def by_us(number: int, **options: Any) -> list[int]:
        table = ours.nearest("v", queries[number], K, columns=["id"], use_index=False, **options)
        return list(table["id"].to_pylist())

    searches: dict[str, Search] = {"lance-sql": by_us, "pylance": by_pylance}
    try:
        faiss = importlib.import_module("faiss")
    except ImportError:
        print("faiss is not installed")
    else:
        flat = faiss.IndexFlatL2(DIM)
        flat.add(values)
        searches["faiss"] = lambda number: list(flat.search(queries[number : number + 1], K)[1][0].tolist())
    told = medians(searches, len(queries))
    report("exact", told, told["lance-sql"][1])
    rare = {
        "lance-sql": lambda number: by_us(number, filter="id % 100 = 3"),
        "pylance": lambda number: by_pylance(number, filter="id % 100 = 3", prefilter=True),
    }
    filtered = medians(rare, len(queries))
    report("exact, filter of 1 %", filtered, filtered["lance-sql"][1])
    return told["lance-sql"][1]


def indexed(paths: Mapping[str, str], queries: npt.NDArray[np.float32], truth: list[list[int]]) -> None:
    """Compare building and searching of indices, each peer with its own."""
    lance = importlib.import_module("lance")
    for kind, build, search in INDICES:
        begin = time.perf_counter()
        ours = lance_sql.open(paths["lance-sql"]).create_index("v", kind, replace=True, metric="l2", **build)
        middle = time.perf_counter()
        lance.dataset(paths["pylance"]).create_index("v", kind, replace=True, metric="l2", **build)
        end = time.perf_counter()
        theirs = lance.dataset(paths["pylance"])
        print(f"{kind}: built in {middle - begin:.1f} s, by pylance in {end - middle:.1f} s")

        def by_us(number: int, ours: Any = ours, search: Mapping[str, Any] = search) -> list[int]:
            return list(ours.nearest("v", queries[number], K, columns=["id"], **search)["id"].to_pylist())

        def by_pylance(number: int, theirs: Any = theirs, search: Mapping[str, Any] = search) -> list[int]:
            nearest = {"column": "v", "q": queries[number], "k": K, **search}
            table = theirs.to_table(columns=["id", "_distance"], nearest=nearest)
            return list(table["id"].to_pylist())

        searches: dict[str, Search] = {"lance-sql": by_us, "pylance": by_pylance}
        for warm in searches.values():
            warm(0)
        report(f"{kind}, {dict(search)}", medians(searches, len(queries)), truth)


def report(title: str, told: Mapping[str, tuple[float, list[list[int]]]], truth: list[list[int]]) -> None:
    """Print times and the share of the nearest rows that were found."""
    print(title)
    for name, (milliseconds, found) in told.items():
        pairs = zip(found, truth, strict=True)
        recall = statistics.mean(len({*rows} & {*right}) / max(1, len(right)) for rows, right in pairs)
        print(f"  {name:<10} {milliseconds:9.2f} ms   recall@{K} {recall:.3f}")


def main() -> None:
    """Write the data, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    arguments = parser.parse_args()
    values, queries = vectors(arguments.rows, 1), vectors(arguments.queries, 2)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIM)
    table = pa.table({"id": pa.array(np.arange(arguments.rows)), "v": lists})
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: str(Path(folder) / name) for name in ("lance-sql", "pylance")}
        for path in paths.values():
            lance_sql.write(table, path)
        truth = exact(paths["lance-sql"], values, queries)
        indexed(paths, queries, truth)


if __name__ == "__main__":
    main()
