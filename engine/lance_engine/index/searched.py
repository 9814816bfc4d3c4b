"""Indices for searches, of vectors and of texts: those of a version, and what they cover."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pyroaring import BitMap

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles
from lance_engine.index.listing import all_segments
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


class Opened(Protocol):
    """A segment whose files are read."""

    @property
    def kind(self) -> str:
        """The name of the kind of index."""

    @property
    def is_outdated(self) -> bool:
        """Whether an old release wrote it in a layout of which only the description is read."""

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""

    @property
    def statistics(self) -> Mapping[str, int]:
        """The metadata in its files."""


Segment = TypeVar("Segment", bound=Opened)


@dataclass(frozen=True, slots=True, eq=False)
class Covering(Generic[Segment]):
    """A segment with the fragments of this version that it is searched for; segments share none."""

    kind: SearchedKind[Segment]
    segment: IndexSegment
    fragments: BitMap
    files: SegmentFiles

    def open(self) -> Segment | None:
        """The opened segment, kept in the cache; None if it is of a kind that is not read."""

        def make() -> Segment | None:
            self.files.fetch_ends()
            try:
                return self.kind.opener(self.files)
            except UnsupportedFeatureError:
                return None

        return CACHE.get(
            (self.files.key, self.kind.message), make, lambda opened: opened.nbytes if opened else 64
        )


@dataclass(frozen=True, slots=True, eq=False)
class SearchedIndex(Generic[Segment]):
    """An index on one column: its segments by age, or the newest one if none covers a fragment."""

    name: str
    field_id: int
    segments: tuple[Covering[Segment], ...]

    @property
    def covered(self) -> BitMap:
        """The fragments of this version that it covers."""
        return BitMap().union(*(segment.fragments for segment in self.segments))


class SearchedKind(Generic[Segment]):
    """A kind of index: its message in the manifest, the newest version that is read, and what opens it."""

    def __init__(self, message: str, newest: int, opener: Callable[[SegmentFiles], Segment]) -> None:
        self.message, self.newest, self.opener = message, newest, opener
        self._known: WeakIdentityDict[Snapshot, tuple[SearchedIndex[Segment], ...]] = WeakIdentityDict()

    def reads(self, segment: IndexSegment) -> bool:
        """Whether a segment is of this kind, can be read, and records what it covers."""
        return (
            segment.kind.lower() == self.message.lower()
            and segment.index_version <= self.newest
            and segment.fragment_ids is not None
            and len(segment.fields) == 1
        )

    def covering(
        self, snapshot: Snapshot, segment: IndexSegment, fragments: BitMap | None = None
    ) -> Covering[Segment]:
        """A segment of this kind, to be searched for some fragments."""
        asked = BitMap() if fragments is None else fragments
        return Covering(self, segment, asked, SegmentFiles(snapshot, segment))

    def indices(self, snapshot: Snapshot) -> tuple[SearchedIndex[Segment], ...]:
        """All of a version, including those that no longer cover anything; reads only the manifest."""
        indices = self._known.get(snapshot)
        if indices is None:
            indices = self._known[snapshot] = tuple(self._listed(snapshot))
        return indices

    def named(self, snapshot: Snapshot, name: str) -> SearchedIndex[Segment] | None:
        """The index of this name."""
        return next((index for index in self.indices(snapshot) if index.name == name), None)

    def _listed(self, snapshot: Snapshot) -> list[SearchedIndex[Segment]]:
        grouped: dict[tuple[str, int], list[IndexSegment]] = {}
        for segment in all_segments(snapshot):
            if self.reads(segment):
                grouped.setdefault((segment.name, segment.fields[0]), []).append(segment)
        present = BitMap(fragment_ids(snapshot.fragments).tolist()) if grouped else BitMap()
        listed = []
        for (name, field), segments in grouped.items():
            free = present
            covering = []
            # Where segments overlap, the newest counts.
            ordered = sorted(segments, key=lambda segment: segment.dataset_version, reverse=True)
            for segment in ordered:
                fragments = BitMap(segment.fragment_ids) & free
                free = free - fragments
                if fragments:
                    covering.append(self.covering(snapshot, segment, fragments))
            # Its metric or its analysis counts for the column even if all rows were changed since.
            covering = covering or [self.covering(snapshot, ordered[0])]
            listed.append(SearchedIndex(name, field, tuple(covering)))
        return listed
