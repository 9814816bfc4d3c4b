"""The metric of a search, and the index that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from lance_engine.index.files import opened_together
from lance_engine.index.listing import all_segments
from lance_engine.index.vector.kind import VECTORS
from lance_engine.index.vector.metadata import metric_in_details
from lance_engine.index.vector.segment import VectorSegment
from lance_engine.search.metric import Metric, metric_named

if TYPE_CHECKING:
    from lance_engine.format.index_section import IndexSegment
    from lance_engine.search.column import VectorColumn
    from lance_engine.table.snapshot import Snapshot

# Kinds of segments on a column of vectors: old releases did not say which.
_KINDS: Final = ("vector", "")


class OpenIndex(NamedTuple):
    """An index with readable segments, each with the fragments for which it is searched."""

    name: str
    segments: tuple[tuple[VectorSegment, frozenset[int]], ...]

    @property
    def coding(self) -> str:
        """How all of its segments store vectors: FLAT, PQ, SQ or RQ."""
        return self.segments[0][0].coding


def metric_of(snapshot: Snapshot, column: VectorColumn, asked: str | None) -> Metric:
    """The metric of a search: the one asked for, otherwise that of the first index on the column, by name.

    Manifests list indices in another order after each change. The index need not be used, or readable.
    Without an index: the number of different bits for unsigned bytes, and L2 for all other types.
    """
    if asked is not None:
        return metric_named(asked)
    for segment in sorted(all_segments(snapshot), key=lambda segment: segment.name):
        if segment.kind.lower() in _KINDS and segment.fields == (column.field_id,):
            metric = metric_in_details(segment.details)
            if metric is None:
                metric = _metric_in_files(snapshot, segment)
            if metric is not None:
                return metric
    return Metric.HAMMING if column.dtype is np.uint8 else Metric.L2


def _metric_in_files(snapshot: Snapshot, segment: IndexSegment) -> Metric | None:
    """The metric in the files of an index; None if they are not read."""
    opened = VECTORS.covering(snapshot, segment).open()
    return None if opened is None else opened.metric


def choose_index(snapshot: Snapshot, column: VectorColumn, metric: Metric) -> OpenIndex | None:
    """The first readable index on the column with this metric, by name."""
    for index in sorted(VECTORS.indices(snapshot), key=lambda index: index.name):
        if index.field_id != column.field_id or column.is_multi:
            continue
        usable = tuple(
            (opened, frozenset(segment.fragments))
            for segment, opened in opened_together(index.segments, lambda segment: segment.open())
            if opened is not None and opened.dim == column.dim and opened.metric is metric
        )
        # Distances of segments that store vectors differently do not compare.
        if usable and len({opened.coding for opened, _ in usable}) == 1:
            return OpenIndex(index.name, usable)
    return None
