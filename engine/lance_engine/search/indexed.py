"""Search with a vector index: its segments are probed, and uncovered rows are searched exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.distinct import distinct
from lance_engine.expr.tree import Column, In, Node
from lance_engine.index.files import opened_together
from lance_engine.index.vector.kind import VECTORS
from lance_engine.index.vector.segment import VectorSegment
from lance_engine.scan.pool import num_threads, ordered_map
from lance_engine.scan.splits import ScanSplit
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.scan.take import take
from lance_engine.search.allowed import AllowedRows
from lance_engine.search.column import VectorColumn, vectors_in
from lance_engine.search.exact import Bounds, search_exactly
from lance_engine.search.metric import Metric
from lance_engine.search.options import SearchOptions
from lance_engine.search.probes import first_probes, most_probes
from lance_engine.search.query import F32Array, Query

if TYPE_CHECKING:
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

# Up to this many rows that pass the filter are compared exactly, which is faster than probing and finds all.
_FEW_ROWS: Final = 2048
# Minimum share of allowed rows for which a graph is searched.
_GRAPH_SHARE: Final = 0.1
# Number of vectors whose distances are recomputed at once.
_REFINED_ROWS: Final = 4096


class OpenIndex(NamedTuple):
    """An index with readable segments, each with the fragments for which it is searched."""

    name: str
    segments: tuple[tuple[VectorSegment, frozenset[int]], ...]
    metric: Metric


def choose_index(snapshot: Snapshot, column: VectorColumn, metric: Metric | None) -> OpenIndex | None:
    """The index on the column with this metric, or without a metric the first; None if none is readable."""
    for index in VECTORS.indices(snapshot):
        if index.field_id != column.field_id or column.is_multi:
            continue
        usable = tuple(
            (found, frozenset(segment.fragments))
            for segment, found in opened_together(index.segments, lambda segment: segment.open())
            if found is not None and found.dim == column.dim and metric in (None, found.metric)
        )
        if usable and len({found.metric for found, _ in usable}) == 1:
            return OpenIndex(index.name, usable, usable[0][0].metric)
    return None


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
    """The k nearest rows of each query, as near as the index knows."""
    covered = set[int]().union(*(fragments for _, fragments in chosen.segments))
    missing = [] if options.fast_search else [f for f in snapshot.fragments if f.id not in covered]
    allowed = AllowedRows(snapshot, reader_for, filter, sorted(covered))
    # If distances are computed exactly for some rows, they are for all.
    exact = bool(missing) or options.refine_factor is not None
    if allowed.addresses is not None and len(allowed.addresses) <= _FEW_ROWS:
        among = In(Column((ROW_ADDRESS,), pa.uint64()), pa.array(allowed.addresses))
        result = search_exactly(snapshot, reader_for, query, k, bounds, among)
    else:
        wanted = k * (options.refine_factor or 1)
        result = (Bounds() if exact else bounds).nearest(query.count, wanted)
        _probe(query, wanted, options, chosen, allowed, result)
        if exact:
            result = _refined(snapshot, reader_for, query, k, bounds, result)
    if missing:
        splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in missing]
        result.merge(search_exactly(snapshot, reader_for, query, k, bounds, filter, splits))
    return result


def _probe(
    query: Query,
    wanted: int,
    options: SearchOptions,
    chosen: OpenIndex,
    allowed: AllowedRows,
    result: kernels.Nearest,
) -> None:
    """Search the partitions nearest to each query."""
    ef = options.ef or wanted + wanted // 2
    sets = [allowed.within(BitMap(sorted(fragments))) for _, fragments in chosen.segments]
    vectors = _prepared(query, chosen.metric)
    orders = [_near_first(segment, vectors) for segment, _ in chosen.segments]

    def search(number: int) -> None:
        vector = vectors[number]
        for (segment, _), rows, (order, distances) in zip(chosen.segments, sets, orders, strict=True):
            if not len(rows):
                continue
            few = segment.has_graph and len(rows) < _GRAPH_SHARE * sum(segment.lengths)
            begin, end = 0, first_probes(segment, distances[number], wanted, options)
            most = most_probes(segment, options)
            while begin < end:
                near = segment.nearby(order[number, begin:end].tolist())
                result.search(number, near, vector, rows, few, ef)
                # More partitions are only searched if too few rows were found.
                begin, end = end, min(most, 2 * end) if result.found(number) < wanted else end

    for _ in ordered_map(search, iter(range(query.count)), 2 * num_threads()):
        pass


def _prepared(query: Query, metric: Metric) -> F32Array:
    """The query vectors in the form of the index: with length 1 for cosine."""
    vectors = query.vectors.astype(np.float32)
    if metric is Metric.COSINE:
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


def _refined(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    query: Query,
    k: int,
    bounds: Bounds,
    candidates: kernels.Nearest,
) -> kernels.Nearest:
    """The candidates with their exact distances."""
    result = bounds.nearest(query.count, k)
    numbers, ids, _ = candidates.result()
    column = query.column
    wanted = distinct(ids)
    for begin in range(0, len(wanted), _REFINED_ROWS):
        chunk = wanted[begin : begin + _REFINED_ROWS]
        read = take(snapshot, reader_for, chunk, [column.parts[0]]).combine_chunks().to_batches()
        for batch in read:
            values, valid = vectors_in(column.of(batch), column)
            matrix = values.reshape(len(chunk), -1)
            here = np.flatnonzero((ids >= chunk[0]) & (ids <= chunk[-1]))
            for number in np.unique(numbers[here]).tolist():
                mine = ids[here[numbers[here] == number]]
                places = np.searchsorted(chunk, mine)
                result.scan(
                    query.compiled(None, number, number + 1),
                    number,
                    np.ascontiguousarray(matrix[places]).reshape(-1),
                    mine,
                    None if valid is None else np.ascontiguousarray(valid[places]),
                )
    return result
