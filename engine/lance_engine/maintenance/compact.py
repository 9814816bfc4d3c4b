"""Compaction: small fragments joined, deleted rows dropped for good."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lance_engine.format.fragment import Fragment
from lance_engine.format.operations import ReserveFragments, Rewrite, RewriteGroup
from lance_engine.format.row_ids import encode_row_ids, encode_versions
from lance_engine.maintenance.changes import commit_change, removed_on_failure, write_options
from lance_engine.maintenance.retry import redo_on_conflict
from lance_engine.maintenance.rows import scan
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.fragments import data_paths, write_fragments

TARGET_ROWS: Final = 1 << 20
DELETED_SHARE: Final = 0.1


def compact(
    snapshot: Snapshot, *, target_rows: int = TARGET_ROWS, deleted_share: float = DELETED_SHARE
) -> Snapshot:
    """Rewrite neighbouring fragments of fewer than `target_rows` rows as fragments of that size.

    Fragments of which more than `deleted_share` of the rows are deleted are rewritten without these, whatever
    their size. Rows keep their order within what is rewritten, and their stable row ids; without stable row
    ids their ids change. Indices no longer cover the rewritten rows. `snapshot` itself if nothing is to be
    done.
    """
    if target_rows < 1:
        raise ValueError(f"target_rows must be at least 1, not {target_rows}")

    def once(snapshot: Snapshot) -> Snapshot:
        groups = plan(snapshot, target_rows, deleted_share)
        return _rewrite(snapshot, groups, target_rows) if groups else snapshot

    return redo_on_conflict(snapshot, once)


def plan(snapshot: Snapshot, target_rows: int, deleted_share: float) -> list[list[Fragment]]:
    """The groups of neighbouring fragments to be rewritten together."""
    runs: list[list[Fragment]] = [[]]
    for fragment in snapshot.fragments:
        if _is_worn(snapshot, fragment, deleted_share) or snapshot.live_rows(fragment) < target_rows:
            runs[-1].append(fragment)
        else:
            runs.append([])
    # A single fragment is not worth rewriting unless that drops rows.
    return [
        run
        for run in runs
        if len(run) > 1 or any(_is_worn(snapshot, fragment, deleted_share) for fragment in run)
    ]


def _is_worn(snapshot: Snapshot, fragment: Fragment, deleted_share: float) -> bool:
    deleted = fragment.physical_rows - snapshot.live_rows(fragment)
    return deleted > deleted_share * fragment.physical_rows


def _rewrite(snapshot: Snapshot, groups: Sequence[Sequence[Fragment]], target_rows: int) -> Snapshot:
    rewritten: list[RewriteGroup] = []
    with removed_on_failure(snapshot.store) as paths:
        for group in groups:
            batches = scan(snapshot, snapshot.schema.names, fragments=group).to_batches()
            options = write_options(snapshot, target_rows)
            new = write_fragments(snapshot.store, snapshot.schema, batches, options)
            paths += data_paths(new)
            if snapshot.has_stable_row_ids:
                new = _with_lineage(snapshot, group, new)
            rewritten.append(RewriteGroup(tuple(group), tuple(new)))
        rewritten = _with_ids(snapshot, rewritten)
    return commit_change(snapshot, Rewrite(tuple(rewritten)), paths)


def _with_ids(snapshot: Snapshot, groups: list[RewriteGroup]) -> list[RewriteGroup]:
    """Reserve ids for the new fragments, which others may then no longer use."""
    count = sum(len(group.new_fragments) for group in groups)
    if not count:
        return groups
    reserved = commit_change(snapshot, ReserveFragments(count))
    highest = reserved.manifest.max_fragment_id
    assert highest is not None
    next_id = highest - count + 1
    numbered = []
    for group in groups:
        new = [
            dataclasses.replace(fragment, id=next_id + position)
            for position, fragment in enumerate(group.new_fragments)
        ]
        next_id += len(new)
        numbered.append(dataclasses.replace(group, new_fragments=tuple(new)))
    return numbered


def _with_lineage(snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment]) -> list[Fragment]:
    """The new fragments with the row ids and versions of the live rows of the old ones."""
    live = [_live_offsets(snapshot, fragment) for fragment in old]
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


def _live_offsets(snapshot: Snapshot, fragment: Fragment) -> npt.NDArray[np.int64]:
    offsets = np.arange(fragment.physical_rows)
    deleted = snapshot.deleted_rows(fragment)
    return offsets if deleted is None else np.delete(offsets, deleted)
