"""Compaction: merges small fragments, and removes deleted rows permanently."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap

from lance_engine.errors import InvalidArgumentError
from lance_engine.format.fragment import Fragment
from lance_engine.format.index_section import parse_index_section
from lance_engine.format.operations import ReserveFragments, Rewrite, RewriteGroup
from lance_engine.format.row_ids import encode_row_ids, encode_versions
from lance_engine.io.store import delete_quietly
from lance_engine.operations.changes import (
    commit_change,
    removed_on_failure,
    write_options,
    write_reported,
)
from lance_engine.operations.fragment_size import DELETED_SHARE, TARGET_BYTES, TARGET_ROWS
from lance_engine.operations.index_remap import follows_rows, remap_indices
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.rows import live_offsets
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.partial import scan
from lance_engine.table.index_coverage import uses_row_ids
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.fragments import data_paths
from lance_engine.write.options import WriteOptions

#: Neighbouring fragments, and the fragments that replace them.
Rewritten: TypeAlias = tuple[Sequence[Fragment], list[Fragment]]


def compact(
    snapshot: Snapshot,
    *,
    target_rows: int = TARGET_ROWS,
    target_bytes: int = TARGET_BYTES,
    deleted_share: float = DELETED_SHARE,
    progress: ProgressOption = None,
) -> Snapshot:
    """Merge neighbouring fragments of fewer than `target_rows` rows and `target_bytes` to that size.

    Fragments whose share of deleted rows exceeds `deleted_share` are rewritten without these rows, whatever
    their size. Rows keep their order within rewritten fragments, and their stable row ids; without stable row
    ids, their ids change. BTREE and BITMAP indices are updated, other indices no longer cover these rows.
    Returns `snapshot` itself if there is nothing to do.
    """
    if target_rows < 1 or target_bytes < 1:
        raise InvalidArgumentError("target_rows and target_bytes must be at least 1")

    def once(snapshot: Snapshot) -> Snapshot:
        groups = plan(snapshot, target_rows, deleted_share, target_bytes)
        if not groups:
            return snapshot
        options = rewrite_options(snapshot, target_rows, target_bytes)
        return _rewrite(snapshot, groups, options, Reporter(progress))

    return redo_on_conflict(snapshot, once)


def plan(
    snapshot: Snapshot, target_rows: int, deleted_share: float, target_bytes: int = TARGET_BYTES
) -> list[list[Fragment]]:
    """The groups of neighbouring fragments to rewrite together.

    If indices continue to cover rewritten rows, all fragments of a group are covered by the same indices.
    """
    runs: list[list[Fragment]] = [[]]
    lasting = _lasting_indices(snapshot)
    before: tuple[bool, ...] = ()
    for fragment in snapshot.fragments:
        coverage = tuple(fragment.id in covered for covered in lasting)
        if coverage != before:
            runs.append([])
        before = coverage
        if _is_worn(snapshot, fragment, deleted_share) or (
            snapshot.live_rows(fragment) < target_rows and _bytes(fragment) < target_bytes
        ):
            runs[-1].append(fragment)
        else:
            runs.append([])
    # Rewriting a single fragment only pays if that removes rows.
    return [
        run
        for run in runs
        if len(run) > 1 or any(_is_worn(snapshot, fragment, deleted_share) for fragment in run)
    ]


def _is_worn(snapshot: Snapshot, fragment: Fragment, deleted_share: float) -> bool:
    deleted = fragment.physical_rows - snapshot.live_rows(fragment)
    return deleted > deleted_share * fragment.physical_rows


def _bytes(fragment: Fragment) -> int:
    """The size of the data files, as far as known from the manifest."""
    return sum(file.file_size or 0 for file in fragment.files)


def _lasting_indices(snapshot: Snapshot) -> list[BitMap]:
    """The coverage of indices whose entries stay valid when rows move, or can be updated."""
    segments = parse_index_section(snapshot.index_section or b"")
    return [
        segment.fragment_ids
        for segment in segments
        if segment.fragment_ids is not None
        and ((snapshot.has_stable_row_ids and uses_row_ids(segment)) or follows_rows(snapshot, segment))
    ]


def rewrite_options(snapshot: Snapshot, target_rows: int, target_bytes: int) -> WriteOptions:
    """Settings for writing the files of compacted fragments."""
    return dataclasses.replace(write_options(snapshot, target_rows), max_bytes_per_file=target_bytes)


def _rewrite(
    snapshot: Snapshot, groups: Sequence[Sequence[Fragment]], options: WriteOptions, reporter: Reporter
) -> Snapshot:
    rewritten: list[Rewritten] = []
    reporter.begin("compacting", sum(snapshot.live_rows(fragment) for group in groups for fragment in group))
    with removed_on_failure(snapshot.store) as paths:
        for group in groups:
            batches = scan(snapshot, snapshot.schema.names, fragments=group).to_batches()
            new = write_reported(snapshot.store, snapshot.schema, batches, options, reporter)
            paths += data_paths(new)
            rewritten.append((group, new))
        reporter.end()
    return commit_rewrite(snapshot, rewritten, reporter)


def commit_rewrite(snapshot: Snapshot, rewritten: Sequence[Rewritten], reporter: Reporter) -> Snapshot:
    """Replace groups of old fragments by new ones with their live rows in order."""
    with removed_on_failure(snapshot.store) as paths:
        groups = []
        for old, new in rewritten:
            paths += data_paths(new)
            placed = _with_lineage(snapshot, old, new) if snapshot.has_stable_row_ids else new
            groups.append(RewriteGroup(tuple(old), tuple(placed)))
        # Index entries refer to the new fragments. Reserving their ids creates a version, so it is done last,
        # when the operation cannot be cancelled any more: if other writers took the expected ids, the entries
        # are moved once more.
        highest = snapshot.manifest.max_fragment_id
        expected = 0 if highest is None else highest + 1
        numbered = _numbered(groups, expected)
        indices, index_paths = remap_indices(snapshot, numbered, reporter)
        paths += index_paths
        first = _reserve(snapshot, groups, expected)
        if first != expected:
            delete_quietly(snapshot.store, index_paths)
            numbered = _numbered(groups, first)
            indices, index_paths = remap_indices(snapshot, numbered, Reporter(None))
            paths += index_paths
    return commit_change(snapshot, Rewrite(tuple(numbered), indices), paths)


def _reserve(snapshot: Snapshot, groups: Sequence[RewriteGroup], expected: int) -> int:
    """Reserve ids for the new fragments, so that other writers do not use them; returns the first."""
    count = sum(len(group.new_fragments) for group in groups)
    if not count:
        return expected
    highest = commit_change(snapshot, ReserveFragments(count)).manifest.max_fragment_id
    assert highest is not None
    return highest - count + 1


def _numbered(groups: Sequence[RewriteGroup], first: int) -> list[RewriteGroup]:
    """The groups with the ids of their new fragments, starting with `first`."""
    ids = itertools.count(first)
    return [
        dataclasses.replace(
            group,
            new_fragments=tuple(
                dataclasses.replace(fragment, id=next(ids)) for fragment in group.new_fragments
            ),
        )
        for group in groups
    ]


def _with_lineage(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> list[Fragment]:
    """The new fragments with the row ids and versions of the live rows of the old ones."""
    live = [live_offsets(snapshot, fragment) for fragment in old]
    pairs = list(zip(old, live, strict=True))
    ids = np.concatenate([snapshot.row_ids(fragment, offsets) for fragment, offsets in pairs])
    created = np.concatenate([snapshot.created_at_versions(fragment)[offsets] for fragment, offsets in pairs])
    updated = np.concatenate(
        [snapshot.last_updated_at_versions(fragment)[offsets] for fragment, offsets in pairs]
    )
    placed, start = [], 0
    for fragment in new:
        rows = slice(start, start + fragment.physical_rows)
        start = rows.stop
        placed.append(
            dataclasses.replace(
                fragment,
                row_ids=encode_row_ids(ids[rows]),
                created_at_versions=encode_versions(created[rows]),
                last_updated_at_versions=encode_versions(updated[rows]),
            )
        )
    return placed
