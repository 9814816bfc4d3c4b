"""Vector search against pylance, faiss (exact search), and DuckDB's lance extension.

Run it with ``python -m benchmarks.vectors --rows 1000000``, after ``pip install 'lance-sql[bench]'``. Peers
take turns, so that what else the machine does meets all of them; times are medians in milliseconds, and as
multiples of the first. For the extension, give a Python that has it: ``--duckdb-python v15/bin/python``
(``pip install duckdb==1.5.5 duckdb-extension-lance``).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

import lance_sql
from benchmarks.vector_memory import measured
from benchmarks.vector_peers import Extension, Faiss, Found, Ours, OurSql, Pylance, UnavailableError, Vectors

DIM: Final = 128
K: Final = 10

#: Kind, options of the build, and of searches; both peers get the same number of partitions. `refine_factor`
#: is our default, without which pylance returns estimates of distances.
INDICES: Sequence[tuple[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]] = (
    ("IVF_PQ", {"num_sub_vectors": 16}, [{"nprobes": 10, "refine_factor": 10}]),
    ("IVF_SQ", {}, [{"nprobes": 10, "refine_factor": 4}]),
    ("IVF_HNSW_SQ", {"num_partitions": 1}, [{"nprobes": 1, "ef": 100, "refine_factor": 4}]),
)


class Peer(Protocol):
    """The peers that can search."""

    name: str

    def search(self, queries: Vectors, k: int, filter: str | None = None, **options: Any) -> Found:
        """The ids of the k nearest rows of each query."""
        ...

    def reopen(self) -> None:
        """Look for a new index: a peer may keep the version that it opened first."""


def vectors(rows: int, seed: int) -> Vectors:
    """Points around a few hundred centres, the same for all seeds."""
    centres = np.random.default_rng(0).normal(size=(300, DIM)).astype(np.float32)
    random = np.random.default_rng(seed)
    return centres[random.integers(0, 300, rows)] + random.standard_normal((rows, DIM), dtype=np.float32)


def compare(
    title: str,
    peers: Sequence[Peer],
    batches: Sequence[Vectors],
    truth: list[list[int]] | None,
    **options: Any,
) -> list[list[int]]:
    """Let peers search in turns, print times and recall; what the first one found."""
    found: dict[str, list[Found]] = {peer.name: [] for peer in peers}
    taking_part = list(peers)
    for number, queries in enumerate([batches[0], *batches]):  # the first one warms up
        for peer in list(taking_part):
            try:
                one = peer.search(queries, K, **options)
            except UnavailableError as error:
                taking_part.remove(peer)
                if error.args:
                    print(f"  {peer.name}: {error}")
                continue
            if number:
                found[peer.name].append(one)
    print(title, flush=True)
    first: list[list[int]] = []
    own = 0.0
    for peer in taking_part:
        took = statistics.median(one.milliseconds for one in found[peer.name])
        ids = [row for one in found[peer.name] for row in one.ids]
        first, own = first or ids, own or took
        hits = [
            len({*ours} & {*right}) / max(1, len(right))
            for ours, right in zip(ids, truth or first, strict=True)
        ]
        print(
            f"  {peer.name:<15} {took:9.2f} ms {took / own:7.2f}   recall@{K} {statistics.mean(hits):.3f}",
            flush=True,
        )
    return first


def memory(title: str, paths: Mapping[str, str], work: str, options: Mapping[str, Any]) -> None:
    """Print the peak of each peer."""
    told = (f"{name} {measured(name, path, work, options) / 2**20:.0f} MB" for name, path in paths.items())
    print(f"  memory, {title}: {', '.join(told)}", flush=True)


def indexed(
    ours: Ours,
    theirs: Pylance,
    others: Sequence[Peer],
    paths: Mapping[str, str],
    batches: Sequence[Vectors],
    truth: list[list[int]],
    with_memory: bool,
    kinds: Sequence[str],
) -> None:
    """Compare building and searching of indices, each peer with its own."""
    for kind, given, searches in INDICES:
        if kinds and kind not in kinds:
            continue
        build = {"num_partitions": max(1, ours.dataset.count_rows() // 8192), "metric": "l2", **given}
        seconds = []
        for peer in (ours, theirs):
            begin = time.perf_counter()
            peer.build(kind, **build)
            seconds.append(time.perf_counter() - begin)
        for other in others:
            other.reopen()
        options = ", ".join(f"{name}={value}" for name, value in build.items())
        print(f"{kind}({options}): built in {seconds[0]:.1f} s, by pylance in {seconds[1]:.1f} s")
        for search in searches:
            options = ", ".join(f"{name}={value}" for name, value in search.items())
            compare(f"{kind}, {options}", [ours, theirs, *others], batches, truth, **search)
        if with_memory:
            memory(f"search {kind}", paths, "search", searches[0])
            memory(f"build {kind}", paths, "build", {"index_type": kind, **build})


def dataset(folder: str, rows: int) -> tuple[dict[str, str], Vectors]:
    """The data, one dataset for each of the two who build indices."""
    values = vectors(rows, 1)
    paths = {name: str(Path(folder, f"{name}-{rows}.lance")) for name in ("lance-sql", "pylance")}
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), DIM)
    table = pa.table({"id": pa.array(np.arange(rows)), "v": lists})
    for path in paths.values():
        if not Path(path).exists():
            lance_sql.write(table, path)
    return paths, values


def main() -> None:
    """Write the data, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--folder", help="where to keep the data for the next run")
    parser.add_argument("--duckdb-python", help="a Python with DuckDB's lance extension")
    parser.add_argument(
        "--memory", action="store_true", help="measure the peak memory of each search and build"
    )
    parser.add_argument(
        "--kinds", nargs="*", default=[], help="only these kinds of indices; none is exact only"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or stack.enter_context(tempfile.TemporaryDirectory())
        paths, values = dataset(folder, given.rows)
        queries = vectors(given.queries, 2)
        ours, theirs = Ours(paths["lance-sql"]), Pylance(paths["pylance"])
        through_sql: list[Peer] = [OurSql(paths["lance-sql"])]
        if given.duckdb_python:
            through_sql.append(stack.enter_context(closing(Extension(paths["pylance"], given.duckdb_python))))
        exact: list[Peer] = [ours, theirs, Faiss(values), *through_sql]
        singles = [queries[number : number + 1] for number in range(len(queries))]
        truth = compare("exact", exact, singles, None, use_index=False)
        compare("exact, 100 at once", exact[:3], [queries] * 3, None, use_index=False)
        few = "id % 100 = 3"
        compare("exact, filter of 1 %", exact, singles[:30], None, filter=few, use_index=False)
        del exact
        if given.memory:
            memory("exact", paths, "search", {"use_index": False})
            memory("exact, filter of 1 %", paths, "search", {"use_index": False, "filter": few})
        if given.kinds != ["none"]:
            indexed(ours, theirs, through_sql, paths, singles, truth, given.memory, given.kinds)


if __name__ == "__main__":
    main()
