"""Updates indices for rows that moved to other files: their entries get the new row addresses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.index_section import IndexSegment
from lance_engine.format.operations import RewriteGroup, RewrittenIndex
from lance_engine.index.files import SegmentFiles
from lance_engine.index.kind import RowFinderKind, is_usable
from lance_engine.index.listing import all_segments
from lance_engine.index.registry import kind_of
from lance_engine.index.segments import CoveringSegment, holds_addresses
from lance_engine.io.store import delete_quietly
from lance_engine.operations.index_build import Relocate, rebuild_moved
from lance_engine.operations.rows import live_offsets
from lance_engine.operations.searched_kinds import indices_of
from lance_engine.progress import Reporter
from lance_engine.table.snapshot import Snapshot, U64Array


def follows_rows(snapshot: Snapshot, segment: IndexSegment) -> bool:
    """Whether the entries of a segment are row addresses that can be updated."""
    if indices_of(segment) is not None:
        return segment.base_id is None and not snapshot.has_stable_row_ids
    kind = kind_of(segment.kind)
    return (
        isinstance(kind, RowFinderKind)
        and is_usable(segment, kind)
        and segment.base_id is None
        and holds_addresses(snapshot, kind, segment)
    )


def remap_indices(
    snapshot: Snapshot, groups: Sequence[RewriteGroup], reporter: Reporter
) -> tuple[tuple[RewrittenIndex, ...], list[str]]:
    """New segments for those whose rows were moved by a rewrite, and the paths of their files.

    If a segment does not cover a group completely, it covers none of it afterwards.
    """
    rewritten: list[RewrittenIndex] = []
    paths: list[str] = []
    try:
        for segment in all_segments(snapshot):
            covered = segment.fragment_ids
            if covered is None or not follows_rows(snapshot, segment):
                continue
            old = BitMap([fragment.id for group in groups for fragment in group.old_fragments])
            followed = [
                group for group in groups if all(fragment.id in covered for fragment in group.old_fragments)
            ]
            if not followed:
                continue
            moved = [fragment.id for group in followed for fragment in group.new_fragments]
            kind = kind_of(segment.kind)
            if isinstance(kind, RowFinderKind) and not is_readable(segment, kind, snapshot):
                continue
            reporter.begin(f"moving the rows of the index '{segment.name}'")
            relocate = _moves(snapshot, followed, old, covered)
            now_covered = (covered - old) | BitMap(moved)
            if isinstance(kind, RowFinderKind):
                covering = CoveringSegment(segment, covered, SegmentFiles(snapshot, segment))
                new, files = rebuild_moved(snapshot, covering, kind, relocate, now_covered, reporter)
            else:
                searched = indices_of(segment)
                assert searched is not None
                result = searched.move(snapshot, segment, relocate, now_covered, reporter)
                if result is None:
                    continue
                new, files = result
            paths += files
            rewritten.append(RewrittenIndex(segment.uuid, new))
    except BaseException:
        delete_quietly(snapshot.store, paths)
        raise
    return tuple(rewritten), paths


def is_readable(segment: IndexSegment, kind: RowFinderKind, snapshot: Snapshot) -> bool:
    """Whether the files of a segment have the expected layout: those of old releases do not."""
    try:
        kind.open(SegmentFiles(snapshot, segment))
    except UnsupportedFeatureError:
        return False
    return True


def _moves(snapshot: Snapshot, groups: Sequence[RewriteGroup], old: BitMap, covered: BitMap) -> Relocate:
    """Maps addresses of rows to those after the rewrite; removed rows are dropped."""
    before, after = addresses_of(snapshot, groups)
    stays = np.array(covered - old, dtype=np.uint64)

    def relocate(ids: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        kept = np.isin(ids >> np.uint64(32), stays)
        if not len(before):
            return ids, kept
        places = np.minimum(np.searchsorted(before, ids), len(before) - 1)
        moved = before[places] == ids
        return np.where(moved, after[places], ids), kept | moved

    return relocate


def addresses_of(snapshot: Snapshot, groups: Sequence[RewriteGroup]) -> tuple[U64Array, U64Array]:
    """The addresses of the live rows of the old fragments, ascending, and their addresses in the new ones."""
    before = [
        live_offsets(snapshot, fragment).astype(np.uint64) | np.uint64(fragment.id << 32)
        for group in groups
        for fragment in group.old_fragments
    ]
    after = [
        np.arange(fragment.physical_rows, dtype=np.uint64) | np.uint64(fragment.id << 32)
        for group in groups
        for fragment in group.new_fragments
    ]
    none = np.empty(0, dtype=np.uint64)
    old, new = np.concatenate([none, *before]), np.concatenate([none, *after])
    order = np.argsort(old, kind="stable")
    return old[order], new[order]
