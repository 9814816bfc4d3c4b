"""The indices of a version that can be used, and what they cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyroaring import BitMap

from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.cache import CACHE
from lance_engine.index.files import SegmentFiles
from lance_engine.index.kind import IndexKind, RowFinder, RowFinderKind, ZoneFinder, is_usable
from lance_engine.index.listing import all_segments
from lance_engine.index.registry import KINDS, readable_kind
from lance_engine.schema_tree import LISTS
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class CoveringSegment:
    """A segment with the fragments of this version that it is searched for; segments share none."""

    segment: IndexSegment
    fragments: BitMap
    files: SegmentFiles

    def open(self, kind: IndexKind) -> RowFinder | ZoneFinder:
        """The opened segment; kept in the cache."""

        def make() -> RowFinder | ZoneFinder:
            self.files.fetch_ends()
            return kind.open(self.files)

        return CACHE.get((self.files.key, kind.name), make, lambda finder: finder.nbytes)


@dataclass(frozen=True, slots=True)
class TableIndex:
    """An index of a kind that is known: all its segments that can be used."""

    name: str
    kind: IndexKind
    parts: tuple[str, ...]
    column_type: pa.DataType
    segments: tuple[CoveringSegment, ...]

    @property
    def covered(self) -> BitMap:
        """The fragments of this version that it covers."""
        return BitMap().union(*(segment.fragments for segment in self.segments))


Indices = Mapping[tuple[str, ...], tuple[TableIndex, ...]]

_KNOWN: WeakIdentityDict[Snapshot, Indices] = WeakIdentityDict()


def usable_indices(snapshot: Snapshot) -> Indices:
    """The indices that can be used, by the path of their column; reads only the manifest."""
    if not snapshot.index_section:
        return {}
    usable_indices = _KNOWN.get(snapshot)
    if usable_indices is None:
        usable_indices = _KNOWN[snapshot] = _usable(snapshot)
    return usable_indices


def known_indices(snapshot: Snapshot) -> list[TableIndex]:
    """The indices of kinds that can be built, including those that no longer cover anything."""
    usable = _usable(snapshot, include_idle=True)
    return [index for indices in usable.values() for index in indices if index.kind.name in KINDS]


def _usable(snapshot: Snapshot, *, include_idle: bool = False) -> Indices:
    present = BitMap(fragment_ids(snapshot.fragments).tolist())
    ordinary, other = column_paths(snapshot), _other_paths(snapshot)
    grouped: dict[tuple[str, str, int], list[IndexSegment]] = {}
    for segment in all_segments(snapshot):
        kind = readable_kind(segment.kind)
        if kind is None or not is_usable(segment, kind) or len(segment.fields) != 1:
            continue
        if segment.fields[0] in (ordinary if kind.name in KINDS else other):
            grouped.setdefault((segment.name, kind.name, segment.fields[0]), []).append(segment)
    by_path: dict[tuple[str, ...], list[TableIndex]] = {}
    for (name, _, field), segments in grouped.items():
        known = readable_kind(segments[0].kind)
        assert known is not None
        parts, column_type = (ordinary if known.name in KINDS else other)[field]
        free = present
        covering = []
        # Where segments overlap, the newest counts.
        for segment in sorted(segments, key=lambda segment: segment.dataset_version, reverse=True):
            fragments = cast(BitMap, segment.fragment_ids) & free
            free = free - fragments
            if fragments:
                covering.append(CoveringSegment(segment, fragments, SegmentFiles(snapshot, segment)))
        if covering or include_idle:
            by_path.setdefault(parts, []).append(TableIndex(name, known, parts, column_type, tuple(covering)))
    return {parts: tuple(indices) for parts, indices in by_path.items()}


def column_paths(snapshot: Snapshot) -> dict[int, tuple[tuple[str, ...], pa.DataType]]:
    """Path and type of the leaves outside of lists, and of lists of leaves, by field id.

    Not of JSON, which files order otherwise.
    """
    column_paths: dict[int, tuple[tuple[str, ...], pa.DataType]] = {}
    pending: list[tuple[tuple[str, ...], Field]] = [
        ((field.name,), field) for field in snapshot.schema.fields
    ]
    while pending:
        parts, field = pending.pop()
        if field.logical_type == "struct" and not field.is_packed:
            pending += [((*parts, child.name), child) for child in field.children]
            continue
        item = field.children[0] if field.logical_type in LISTS else field
        if item.is_leaf and not item.is_json:
            column_paths[field.id] = (parts, field.arrow_type)
    return column_paths


def _other_paths(snapshot: Snapshot) -> dict[int, tuple[tuple[str, ...], pa.DataType]]:
    """Path and type of JSON columns and of structs, which only kinds that are not built have indices on.

    Not of JSON where row ids are stable: no reader agrees on what its indices hold there.
    """
    other_paths: dict[int, tuple[tuple[str, ...], pa.DataType]] = {}
    pending: list[tuple[tuple[str, ...], Field]] = [
        ((field.name,), field) for field in snapshot.schema.fields
    ]
    while pending:
        parts, field = pending.pop()
        is_struct = field.logical_type == "struct" and not field.is_packed
        if is_struct:
            pending += [((*parts, child.name), child) for child in field.children]
        if is_struct or (field.is_json and not snapshot.has_stable_row_ids):
            other_paths[field.id] = (parts, field.arrow_type)
    return other_paths


def holds_addresses(snapshot: Snapshot, kind: RowFinderKind, segment: IndexSegment) -> bool:
    """Whether a segment of a row index holds row addresses, and not stable row ids."""
    return not snapshot.has_stable_row_ids or kind.holds_addresses(segment.index_version)
