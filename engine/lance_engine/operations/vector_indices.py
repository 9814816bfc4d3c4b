"""Creating and extending vector indices, and moving them with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from pyroaring import BitMap

from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.listing import all_segments
from lance_engine.index.vector.encoder import Encoder
from lance_engine.index.vector.listing import CoveringVectors, VectorIndex, is_vector, vector_indices
from lance_engine.index.vector.options import vector_options
from lance_engine.index.vector.reencode import encoder_of, same_codes, stored_rows
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.vector_build import build_vectors, moved_segment, train_encoder
from lance_engine.progress import Reporter
from lance_engine.search.column import VectorColumn, vector_column
from lance_engine.table.snapshot import Snapshot, U64Array

# An index has no more segments than this: then they are merged into one.
_MOST_SEGMENTS: Final = 8


def create_vector_index(
    snapshot: Snapshot,
    column: str,
    kind: str,
    name: str,
    options: Mapping[str, Any],
    removed: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    """Build an index over all rows of this version."""
    place = vector_column(snapshot, column)
    vector = snapshot.schema.field(column).to_arrow().type
    chosen = vector_options(kind, vector, snapshot.num_rows, options)
    encoder = train_encoder(snapshot, place, chosen, reporter)
    segment, paths = build_vectors(snapshot, name, place, encoder, list(snapshot.fragments), reporter)
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def optimize_vector_index(snapshot: Snapshot, name: str, reporter: Reporter) -> Snapshot:
    """Make an index cover the fragments that came after it; `snapshot` itself if it covers all.

    New rows get a segment of their own with the partitions and codes of the newest one. Many segments are
    merged; those with other codes are built again from the vectors.
    """
    index = next((index for index in vector_indices(snapshot) if index.name == name), None)
    if index is None or not index.segments:
        return snapshot
    missing = [fragment for fragment in snapshot.fragments if fragment.id not in index.covered]
    if not missing and len(index.segments) <= _MOST_SEGMENTS:
        return snapshot
    place = _column_of(snapshot, index)
    newest = index.segments[0].open()
    encoder = None if newest is None else encoder_of(newest, index.segments[0].segment.details)
    if place is None or newest is None or encoder is None or newest.dim != place.dim or place.is_multi:
        return snapshot  # of a kind that is not written: left alone
    if len(index.segments) < _MOST_SEGMENTS and not snapshot.has_stable_row_ids:
        segment, paths = build_vectors(snapshot, name, place, encoder, missing, reporter)
        return commit_change(snapshot, CreateIndex((segment,), ()), paths)
    return _merge(snapshot, index, place, encoder, missing, reporter)


def _merge(
    snapshot: Snapshot,
    index: VectorIndex,
    place: VectorColumn,
    encoder: Encoder,
    missing: Sequence[Any],
    reporter: Reporter,
) -> Snapshot:
    """Make one segment of all."""
    carried = []
    fragments = BitMap()
    again = list(missing)
    for covering in index.segments:
        opened = covering.open()
        if opened is not None and same_codes(opened, encoder):
            carried.append((stored_rows(opened), _still_there(snapshot, covering.fragments)))
            fragments |= covering.fragments
        else:
            again += [snapshot.fragment(number) for number in covering.fragments]
    again.sort(key=lambda fragment: fragment.id)
    segment, paths = build_vectors(snapshot, index.name, place, encoder, again, reporter, carried, fragments)
    removed = tuple(
        segment for segment in all_segments(snapshot) if segment.name == index.name and is_vector(segment)
    )
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def move_vectors(
    snapshot: Snapshot,
    segment: IndexSegment,
    covering: CoveringVectors,
    relocate: Relocate,
    covered: BitMap,
    reporter: Reporter,
) -> tuple[IndexSegment, list[str]] | None:
    """The segment with its rows elsewhere, as `relocate` tells; None if this kind is not written."""
    opened = covering.open()
    encoder = None if opened is None else encoder_of(opened, segment.details)
    place = next(
        (
            vector_column(snapshot, path)
            for field, path in snapshot.schema.paths_by_id().items()
            if field == segment.fields[0]
        ),
        None,
    )
    if opened is None or encoder is None or place is None:
        return None
    carried = [(stored_rows(opened), relocate)]
    new, paths = build_vectors(snapshot, segment.name, place, encoder, [], reporter, carried)
    return moved_segment(new, segment, covered), paths


def _column_of(snapshot: Snapshot, index: VectorIndex) -> VectorColumn | None:
    path = snapshot.schema.paths_by_id().get(index.field_id)
    return None if path is None else vector_column(snapshot, path)


def _still_there(snapshot: Snapshot, fragments: BitMap) -> Relocate:
    """Keeps the rows that exist in the fragments that a segment is asked for."""
    covered = np.array(fragments, dtype=np.uint64)

    def relocate(ids: U64Array) -> tuple[U64Array, np.ndarray[Any, np.dtype[np.bool_]]]:
        addresses, found = snapshot.locate_row_ids(ids)
        return ids, found & np.isin(addresses >> np.uint64(32), covered)

    return relocate
