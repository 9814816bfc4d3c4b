"""The inverted indices of a version, and what they cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyroaring import BitMap

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles
from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.listing import all_segments
from lance_engine.owned import OwnedValues

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

MESSAGE: Final = "Inverted"
NEWEST: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class CoveringTexts:
    """A segment with the fragments of this version for which it is asked; segments share none."""

    segment: IndexSegment
    fragments: BitMap
    files: SegmentFiles

    def open(self) -> TextSegment | None:
        """The opened segment, kept in the cache; None if it is of a kind that is not read."""

        def make() -> TextSegment | None:
            try:
                return TextSegment(self.files)
            except UnsupportedFeatureError:
                return None

        return CACHE.get((self.files.key, MESSAGE), make, lambda found: found.nbytes if found else 64)


@dataclass(frozen=True, slots=True, eq=False)
class InvertedIndex:
    """An index on a column of texts."""

    name: str
    field_id: int
    segments: tuple[CoveringTexts, ...]

    @property
    def covered(self) -> BitMap:
        """The fragments of this version that it covers."""
        return BitMap().union(*(segment.fragments for segment in self.segments))


_KNOWN: OwnedValues[Snapshot, tuple[InvertedIndex, ...]] = OwnedValues()


def is_inverted(segment: IndexSegment) -> bool:
    """Whether a segment is one of an inverted index that may be read, and tells what it covers."""
    return (
        segment.kind.lower() == MESSAGE.lower()
        and segment.index_version <= NEWEST
        and segment.fragment_ids is not None
        and len(segment.fields) == 1
    )


def inverted_indices(snapshot: Snapshot) -> tuple[InvertedIndex, ...]:
    """All of them, those that cover nothing any more too; told by the manifest alone."""
    found = _KNOWN.get(snapshot)
    if found is None:
        found = _KNOWN[snapshot] = tuple(_listed(snapshot))
    return found


def _listed(snapshot: Snapshot) -> list[InvertedIndex]:
    present = BitMap([fragment.id for fragment in snapshot.fragments]) if snapshot.index_section else BitMap()
    grouped: dict[tuple[str, int], list[IndexSegment]] = {}
    for segment in all_segments(snapshot):
        if is_inverted(segment):
            grouped.setdefault((segment.name, segment.fields[0]), []).append(segment)
    found = []
    for (name, field), segments in grouped.items():
        free = present
        covering = []
        # Where segments overlap, the newest counts.
        for segment in sorted(segments, key=lambda segment: segment.dataset_version, reverse=True):
            fragments = BitMap(segment.fragment_ids) & free
            free = free - fragments
            if fragments:
                covering.append(CoveringTexts(segment, fragments, SegmentFiles(snapshot, segment)))
        found.append(InvertedIndex(name, field, tuple(covering)))
    return found
