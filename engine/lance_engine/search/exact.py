"""Exact search: computes the distance of every row that passes the filter, in a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.system import ROW_ID
from lance_engine.search.column import VectorColumn, vectors_in
from lance_engine.search.query import F32Array, Query

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.table.snapshot import Snapshot

# Number of vectors compared at once: enough to be worth a call, and small enough for the cache of a core.
_BATCH_BYTES: Final = 2 << 20
# Number of queries whose distances are computed at once.
_MOST_QUERIES: Final = 256


class Bounds(NamedTuple):
    """Accepted distances: lower <= distance < upper. None means no bound."""

    lower: float | None = None
    upper: float | None = None

    def nearest(self, queries: int, k: int) -> kernels.Nearest:
        """An empty result for this many queries."""
        lower, upper = (float("nan") if bound is None else float(bound) for bound in self)
        return kernels.Nearest(queries, k, lower, upper)


def search_exactly(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: Query,
    k: int,
    bounds: Bounds,
    filter: Node | None,
    splits: Sequence[ScanSplit] | None = None,
) -> kernels.Nearest:
    """The k nearest rows of each query among those that pass the filter, optionally in some ranges of rows.

    The rows are those of a scan: pruned by zone maps and indices, without deleted ones. Batches are compared
    on the threads that decode them; only a few batches and the k nearest rows per thread are in memory.
    """
    column = query.column
    scanner = Scanner(
        snapshot,
        reader_for,
        columns=[column.parts[0], ROW_ID],
        filter=filter,
        splits=splits,
        batch_size=max(256, _BATCH_BYTES // column.vector_bytes),
    )
    idle: deque[kernels.Nearest] = deque()
    made: list[kernels.Nearest] = []
    scan = _multivectors(query) if column.is_multi else _vectors(query)

    def work(batch: pa.RecordBatch) -> None:
        try:
            nearest = idle.pop()
        except IndexError:
            nearest = bounds.nearest(query.count, k)
            made.append(nearest)
        scan(nearest, column.of(batch), batch.column(1).to_numpy())
        idle.append(nearest)

    scanner.reduce(work)
    result = made[0] if made else bounds.nearest(query.count, k)
    for nearest in made[1:]:
        result.merge(nearest)
    return result


_Scan = Callable[[kernels.Nearest, pa.Array, npt.NDArray[np.uint64]], None]


def _vectors(query: Query) -> _Scan:
    compiled = [
        (first, query.compiled(None, first, first + _MOST_QUERIES))
        for first in range(0, query.count, _MOST_QUERIES)
    ]

    def scan(nearest: kernels.Nearest, array: pa.Array, ids: npt.NDArray[np.uint64]) -> None:
        values, valid = vectors_in(array, query.column)
        for first, queries in compiled:
            nearest.scan(queries, first, values, ids, valid)

    return scan


def _multivectors(query: Query) -> _Scan:
    compiled = query.compiled()

    def scan(nearest: kernels.Nearest, array: pa.Array, ids: npt.NDArray[np.uint64]) -> None:
        nearest.offer(0, multivector_distances(compiled, array, query.column), ids)

    return scan


def multivector_distances(compiled: Any, array: pa.Array, column: VectorColumn) -> F32Array:
    """Per list of vectors the sum over the query's vectors of the distance to the nearest one.

    NaN (no distance) for nulls, lists without vectors, and lists in which a query vector finds none
    that has a distance.
    """
    multivector_distances = np.full(len(array), np.nan, dtype=np.float32)
    starts = np.asarray(array.offsets)
    filled = np.flatnonzero((starts[1:] > starts[:-1]) & array.is_valid().to_numpy(zero_copy_only=False))
    if not len(filled):
        return multivector_distances
    first, last = int(starts[0]), int(starts[-1])
    values, valid = vectors_in(array.values.slice(first, last - first), column)
    distances = compiled.distances(values)
    if valid is not None:
        distances[:, valid == 0] = np.nan
    distances = np.where(np.isnan(distances), np.inf, distances)
    # Pairs of borders: what is between one list and the next, of null lists, is skipped.
    borders = np.stack([starts[filled], starts[filled + 1]], axis=1).reshape(-1) - first
    padded = np.concatenate([distances, np.full((len(distances), 1), np.inf, np.float32)], axis=1)
    least = np.minimum.reduceat(padded, borders, axis=1)[:, ::2]
    total = least.sum(axis=0, dtype=np.float32)
    multivector_distances[filled] = np.where(np.isinf(total), np.float32(np.nan), total)
    return multivector_distances
