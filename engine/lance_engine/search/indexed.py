"""Search with a vector index: its segments are probed, and uncovered rows are searched exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.expr.tree import Column, In, Node
from lance_engine.index.vector.segment import VectorSegment
from lance_engine.scan.pool import num_threads, ordered_map
from lance_engine.scan.splits import ScanSplit
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.search.allowed import AllowedRows
from lance_engine.search.choice import OpenIndex
from lance_engine.search.exact import Bounds, search_exactly
from lance_engine.search.metric import Metric
from lance_engine.search.options import SearchOptions
from lance_engine.search.probes import first_probes, most_probes
from lance_engine.search.query import F32Array, Query
from lance_engine.search.refine import candidates_wanted, is_exact, refine

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

# Up to this many rows that pass the filter are compared exactly, which is faster than probing and finds all.
_FEW_ROWS: Final = 2048
# Minimum share of allowed rows for which a graph is searched.
_GRAPH_SHARE: Final = 0.1


def search_index(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: Query,
    k: int,
    bounds: Bounds,
    filter: Node | None,
    options: SearchOptions,
    chosen: OpenIndex,
) -> kernels.Nearest:
    """The k nearest rows of each query among those that the index finds, by exact distances.

    With `estimates`, by the distances that the index estimates, if they are known for all rows.
    """
    covered = set[int]().union(*(fragments for _, fragments in chosen.segments))
    missing = [] if options.fast_search else [f for f in snapshot.fragments if f.id not in covered]
    allowed = AllowedRows(snapshot, reader_for, filter, sorted(covered))
    if allowed.addresses is not None and len(allowed.addresses) <= _FEW_ROWS:
        among = In(Column((ROW_ADDRESS,), pa.uint64()), pa.array(allowed.addresses))
        result = search_exactly(snapshot, reader_for, query, k, bounds, among)
    elif not missing and options.refine_factor is None and is_exact(chosen, query.column):
        result = _Probes(query, k, options, chosen, allowed).nearest(bounds)
    elif not missing and options.estimates:
        result = _estimated(_Probes(query, k, options, chosen, allowed), bounds)
    else:
        result = _refined(snapshot, reader_for, _Probes(query, k, options, chosen, allowed), bounds)
    if missing:
        splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in missing]
        result.merge(search_exactly(snapshot, reader_for, query, k, bounds, filter, splits))
    return result


@dataclass(frozen=True, slots=True)
class _Probes:
    """The search of `k` rows in the partitions of the segments of an index."""

    query: Query
    k: int
    options: SearchOptions
    chosen: OpenIndex
    allowed: AllowedRows

    def nearest(self, bounds: Bounds, wanted: int | None = None) -> kernels.Nearest:
        """The nearest `k` or `wanted` rows by the index's distances; `k` decides where they are searched."""
        wanted = self.k if wanted is None else wanted
        result = bounds.nearest(self.query.count, wanted)
        ef = max(self.options.ef or wanted + wanted // 2, wanted)
        segments = self.chosen.segments
        sets = [self.allowed.within(BitMap(sorted(fragments))) for _, fragments in segments]
        vectors = _prepared(self.query)
        orders = [_near_first(segment, vectors) for segment, _ in segments]

        def search(number: int) -> None:
            vector = vectors[number]
            for (segment, _), rows, (order, distances) in zip(segments, sets, orders, strict=True):
                if not len(rows):
                    continue
                few = segment.has_graph and len(rows) < _GRAPH_SHARE * sum(segment.lengths)
                begin, end = 0, first_probes(segment, distances[number], self.k, self.options)
                most = most_probes(segment, self.options)
                while begin < end:
                    near = segment.nearby(order[number, begin:end].tolist())
                    result.search(number, near, vector, rows, few, ef)
                    # More partitions are only searched if too few rows were found.
                    begin, end = end, min(most, 2 * end) if result.found(number) < wanted else end

        for _ in ordered_map(search, iter(range(self.query.count)), 2 * num_threads()):
            pass
        return result


def _refined(
    snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], probes: _Probes, bounds: Bounds
) -> kernels.Nearest:
    """The nearest of more rows than are returned, by their exact distances."""
    query, k = probes.query, probes.k
    result = bounds.nearest(query.count, k)
    wanted = candidates_wanted(k, probes.chosen, probes.options)
    while True:
        candidates = probes.nearest(Bounds(), wanted)
        nearest = Bounds(lower=bounds.lower).nearest(query.count, k)
        refine(snapshot, reader_for, query, candidates, nearest)
        # If rows are left out because they are too near, those after them count.
        if bounds.lower is None or not any(
            candidates.found(number) == wanted and nearest.found(number) < k for number in range(query.count)
        ):
            result.merge(nearest)
            return result
        wanted *= 4


def _estimated(probes: _Probes, bounds: Bounds) -> kernels.Nearest:
    """The nearest rows by the distances that the index estimates."""
    query = probes.query
    if query.metric is not Metric.COSINE or probes.chosen.coding == "FLAT":
        return probes.nearest(bounds)
    # Codes estimate the squared distance between normalized vectors, which is twice the cosine distance.
    lower, upper = (None if bound is None else 2 * bound for bound in bounds)
    numbers, ids, distances = probes.nearest(Bounds(lower, upper)).result()
    result = Bounds().nearest(query.count, probes.k)
    for number in np.unique(numbers).tolist():
        mine = numbers == number
        result.offer(number, np.ascontiguousarray(distances[mine] / 2), np.ascontiguousarray(ids[mine]))
    return result


def _prepared(query: Query) -> F32Array:
    """The query vectors in the form of the index: with length 1 for cosine."""
    vectors = query.vectors.astype(np.float32)
    if query.metric is Metric.COSINE:
        with np.errstate(invalid="ignore", divide="ignore"):
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors)


def _near_first(segment: VectorSegment, vectors: F32Array) -> tuple[npt.NDArray[np.int64], F32Array]:
    """For each query, the partitions ordered by distance, and the distances."""
    centroids = segment.centroids
    metric, element, queries = Metric.L2, kernels.Element.FLOAT32, vectors
    if segment.metric is Metric.HAMMING:
        metric, element = Metric.HAMMING, kernels.Element.UINT8
        centroids, queries = centroids.astype(np.uint8), vectors.astype(np.uint8)
    elif segment.metric is Metric.DOT:
        metric = Metric.DOT
    compiled = kernels.VectorQuery(metric, element, segment.dim, queries.view(np.uint8).reshape(-1))
    distances = compiled.distances(centroids.view(np.uint8).reshape(-1))
    order = np.argsort(distances, axis=1, kind="stable")
    return order, np.take_along_axis(distances, order, axis=1)
