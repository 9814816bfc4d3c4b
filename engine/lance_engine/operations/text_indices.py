"""Creating and extending inverted indices, and moving them with their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from pyroaring import BitMap

from lance_engine.errors import InvalidSearchError
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.inverted.analysis import Analysis, analysis_of
from lance_engine.index.inverted.listing import CoveringTexts, InvertedIndex, inverted_indices, is_inverted
from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.listing import all_segments
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Relocate
from lance_engine.operations.text_build import TextOptions, build_texts
from lance_engine.progress import Reporter
from lance_engine.search.text.column import TextColumn, text_column
from lance_engine.table.snapshot import Snapshot, U64Array

KINDS: Final = ("INVERTED", "FTS")
# An index has no more segments than this: then they are merged into one.
_MOST_SEGMENTS: Final = 8


def create_inverted_index(
    snapshot: Snapshot,
    column: str,
    name: str,
    options: Mapping[str, Any],
    removed: tuple[IndexSegment, ...],
    reporter: Reporter,
) -> Snapshot:
    """Build an index over all rows of this version."""
    place = text_column(snapshot, column)
    chosen = text_options(options)
    segment, paths = build_texts(snapshot, name, place, chosen, list(snapshot.fragments), reporter)
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def text_options(options: Mapping[str, Any]) -> TextOptions:
    """The options of an index; TypeError if one is unknown, InvalidSearchError if one is invalid."""
    given = dict(options)
    with_position = given.pop("with_position", False)
    if not isinstance(with_position, bool):
        raise InvalidSearchError(f"with_position is True or False, not {with_position!r}")
    known = [field.name for field in fields(Analysis)]
    unknown = given.keys() - set(known)
    if unknown:
        raise TypeError(
            f"Unknown option '{min(unknown)}' of an inverted index. Choose from "
            + ", ".join(["with_position", *known])
        )
    return TextOptions(analysis_of(given), with_position)


def optimize_inverted_index(snapshot: Snapshot, name: str, reporter: Reporter) -> Snapshot:
    """Make an index cover the fragments that came after it; `snapshot` itself if it covers all.

    New rows get a segment of their own. Many segments are merged; those that cut texts in another way are
    built again from the texts.
    """
    index = next((index for index in inverted_indices(snapshot) if index.name == name), None)
    if index is None or not index.segments:
        return snapshot
    missing = [fragment for fragment in snapshot.fragments if fragment.id not in index.covered]
    if not missing and len(index.segments) <= _MOST_SEGMENTS:
        return snapshot
    place = _column_of(snapshot, index.field_id)
    newest = index.segments[0].open()
    if place is None or newest is None:
        return snapshot  # of a kind that is not written: left alone
    options = TextOptions(newest.layout.analysis, newest.layout.with_position)
    if len(index.segments) < _MOST_SEGMENTS and not snapshot.has_stable_row_ids:
        segment, paths = build_texts(snapshot, name, place, options, missing, reporter)
        return commit_change(snapshot, CreateIndex((segment,), ()), paths)
    return _merge(snapshot, index, place, options, missing, reporter)


def _merge(
    snapshot: Snapshot,
    index: InvertedIndex,
    place: TextColumn,
    options: TextOptions,
    missing: list[Fragment],
    reporter: Reporter,
) -> Snapshot:
    """Make one segment of all."""
    carried: list[tuple[TextSegment, Relocate]] = []
    fragments = BitMap()
    again = list(missing)
    for covering in index.segments:
        opened = covering.open()
        here = covering.fragments
        if opened is not None and _can_carry(opened, options):
            here = here - opened.deleted_fragments
            carried.append((opened, _still_there(snapshot, here)))
            fragments |= here
        again += [snapshot.fragment(number) for number in covering.fragments if number not in fragments]
    again.sort(key=lambda fragment: fragment.id)
    segment, paths = build_texts(snapshot, index.name, place, options, again, reporter, carried, fragments)
    removed = tuple(
        segment for segment in all_segments(snapshot) if segment.name == index.name and is_inverted(segment)
    )
    return commit_change(snapshot, CreateIndex((segment,), removed), paths)


def _can_carry(segment: TextSegment, options: TextOptions) -> bool:
    """Whether the posting lists of a segment say what those of a new one have to say."""
    layout = segment.layout
    return layout.analysis == options.analysis and (segment.has_positions or not options.with_position)


def move_texts(
    snapshot: Snapshot, covering: CoveringTexts, relocate: Relocate, covered: BitMap, reporter: Reporter
) -> tuple[IndexSegment, list[str]] | None:
    """The segment with its rows elsewhere, as `relocate` tells; None if this kind is not written."""
    opened = covering.open()
    place = _column_of(snapshot, covering.segment.fields[0])
    if opened is None or place is None or opened.deleted_fragments:
        return None
    options = TextOptions(opened.layout.analysis, opened.layout.with_position)
    if not _can_carry(opened, options):
        return None
    old = covering.segment
    new, paths = build_texts(snapshot, old.name, place, options, [], reporter, [(opened, relocate)])
    return replace(new, dataset_version=old.dataset_version, fragment_ids=covered), paths


def _column_of(snapshot: Snapshot, field: int) -> TextColumn | None:
    path = snapshot.schema.paths_by_id().get(field)
    try:
        return None if path is None else text_column(snapshot, path)
    except InvalidSearchError:
        return None


def _still_there(snapshot: Snapshot, fragments: BitMap) -> Relocate:
    """Keeps the rows that exist in the fragments that a segment is asked for."""
    covered = np.array(fragments, dtype=np.uint64)

    def relocate(ids: U64Array) -> tuple[U64Array, np.ndarray[Any, np.dtype[np.bool_]]]:
        addresses, found = snapshot.locate_row_ids(ids)
        return ids, found & np.isin(addresses >> np.uint64(32), covered)

    return relocate
