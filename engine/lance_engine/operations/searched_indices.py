"""Extends search indices, and moves their entries with the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
from pyroaring import BitMap

from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import CreateIndex
from lance_engine.index.listing import all_segments
from lance_engine.index.searched import Covering, Opened, SearchedIndex, SearchedKind
from lance_engine.operations.changes import commit_change
from lance_engine.operations.index_build import Relocate
from lance_engine.progress import Reporter
from lance_engine.table.snapshot import Snapshot, U64Array

# Maximum number of segments of an index; more are merged into one.
_MOST_SEGMENTS: Final = 8

Segment = TypeVar("Segment", bound=Opened)
Carried = TypeVar("Carried", bound=Opened, contravariant=True)


class SegmentWriter(Protocol[Carried]):
    """Writes segments of an index in the form of an existing one."""

    @property
    def takes_rows(self) -> bool:
        """Whether rows of the column can be added."""

    def retrained(self) -> SegmentWriter[Carried]:
        """A writer with the same options, for all rows of the column."""

    def carried(self, opened: Carried, fragments: BitMap) -> BitMap:
        """The fragments for which entries of a segment can be copied unchanged."""

    def build(
        self,
        fragments: Sequence[Fragment],
        carried: Sequence[tuple[Carried, Relocate]] = (),
        carried_fragments: BitMap | None = None,
    ) -> tuple[IndexSegment, list[str]]:
        """A segment over the rows of fragments and over entries of other segments; the paths of its files."""


#: Returns the writer for the index of a segment; None if its kind is read-only.
WriterFor = Callable[[Snapshot, Covering[Segment], Reporter], SegmentWriter[Segment] | None]


class SearchedIndices(Generic[Segment]):
    """The operations on the indices of one kind."""

    def __init__(self, kind: SearchedKind[Segment], writer_for: WriterFor[Segment]) -> None:
        self.kind, self._writer_for = kind, writer_for

    def optimize(self, snapshot: Snapshot, name: str, reporter: Reporter) -> Snapshot:
        """Extend an index to later fragments; returns `snapshot` itself if it covers all.

        New rows get a separate segment, in the form of the newest one. Many segments are merged; segments of
        a different form are built again from the column.
        """
        index = self.kind.named(snapshot, name)
        if index is None:
            return snapshot
        segments = self._segments(snapshot, name)
        missing = [fragment for fragment in snapshot.fragments if fragment.id not in index.covered]
        opened = [covering.open() for covering in index.segments]
        is_outdated = any(segment is not None and segment.is_outdated for segment in opened)
        if not missing and not is_outdated and len(index.segments) <= _MOST_SEGMENTS:
            return snapshot
        writer = self._writer_for(snapshot, index.segments[0], reporter)
        if writer is None or not writer.takes_rows:
            return snapshot  # not changed
        # Otherwise the old segments would cover nothing, or claim the same fragments as the new one.
        is_current = bool(index.covered) and not is_outdated
        is_current = is_current and not any(segment.is_behind for segment in segments)
        if is_current and len(index.segments) < _MOST_SEGMENTS and not snapshot.has_stable_row_ids:
            segment, paths = writer.build(missing)
            return commit_change(snapshot, CreateIndex((segment,), ()), paths)
        return self._merge(snapshot, index, writer, missing)

    def rebuild(self, snapshot: Snapshot, name: str, reporter: Reporter) -> Snapshot:
        """Build an index again from all rows; returns `snapshot` itself if its kind is read-only."""
        index = self.kind.named(snapshot, name)
        writer = None if index is None else self._writer_for(snapshot, index.segments[0], reporter)
        if writer is None or not writer.takes_rows:
            return snapshot
        segment, paths = writer.retrained().build(list(snapshot.fragments))
        return commit_change(snapshot, CreateIndex((segment,), self._segments(snapshot, name)), paths)

    def _merge(
        self,
        snapshot: Snapshot,
        index: SearchedIndex[Segment],
        writer: SegmentWriter[Segment],
        missing: list[Fragment],
    ) -> Snapshot:
        """Merge all into one segment."""
        carried: list[tuple[Segment, Relocate]] = []
        fragments = BitMap()
        again = list(missing)
        for covering in index.segments:
            opened = covering.open()
            here = BitMap() if opened is None else writer.carried(opened, covering.fragments)
            if opened is not None and here:
                carried.append((opened, _still_there(snapshot, here)))
                fragments |= here
            again += [snapshot.fragment(number) for number in covering.fragments - here]
        again.sort(key=lambda fragment: fragment.id)
        segment, paths = writer.build(again, carried, fragments)
        return commit_change(snapshot, CreateIndex((segment,), self._segments(snapshot, index.name)), paths)

    def _segments(self, snapshot: Snapshot, name: str) -> tuple[IndexSegment, ...]:
        """All of an index, including those that no longer cover any fragment."""
        return tuple(
            segment for segment in all_segments(snapshot) if segment.name == name and self.kind.reads(segment)
        )

    def move(
        self,
        snapshot: Snapshot,
        segment: IndexSegment,
        relocate: Relocate,
        covered: BitMap,
        reporter: Reporter,
    ) -> tuple[IndexSegment, list[str]] | None:
        """The segment with its entries moved by `relocate`; None if this kind is read-only."""
        covering = self.kind.covering(snapshot, segment, segment.fragment_ids)
        opened = covering.open()
        if opened is None:
            return None
        writer = self._writer_for(snapshot, covering, reporter)
        if writer is None or writer.carried(opened, covering.fragments) != covering.fragments:
            return None
        new, paths = writer.build([], [(opened, relocate)])
        return replace(new, dataset_version=segment.dataset_version, fragment_ids=covered), paths


def _still_there(snapshot: Snapshot, fragments: BitMap) -> Relocate:
    """Keeps the rows in the fragments for which a segment is used."""
    covered = np.array(fragments, dtype=np.uint64)

    def relocate(ids: U64Array) -> tuple[U64Array, np.ndarray[Any, np.dtype[np.bool_]]]:
        addresses, exists = snapshot.locate_row_ids(ids)
        return ids, exists & np.isin(addresses >> np.uint64(32), covered)

    return relocate
