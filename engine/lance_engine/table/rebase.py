"""Combines deletions of several writers in one fragment, if they affect different rows."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lance_engine.distinct import union
from lance_engine.errors import CommitConflictError
from lance_engine.format.fragment import DeletionKind, Fragment
from lance_engine.format.operations import Delete, Update
from lance_engine.io.store import delete_quietly
from lance_engine.table.deletions import deletion_path, of_fragments, write_deletions
from lance_engine.table.snapshot import Snapshot

U32Array = npt.NDArray[np.uint32]


@dataclasses.dataclass(frozen=True)
class TakenRows:
    """The rows that a Delete or an Update removes from existing fragments.

    By fragment id: the fragments as they were read, and the ascending offsets of the rows, without rows that
    were already deleted.
    """

    fragments: Mapping[int, Fragment]
    offsets: Mapping[int, U32Array]


@dataclasses.dataclass(frozen=True)
class Rebased:
    """An operation adapted to the latest version, and the paths of deletion files written for it."""

    operation: Delete | Update
    written: tuple[str, ...]


def rebase(operation: Delete | Update, rows: TakenRows, latest: Snapshot) -> Rebased:
    """Adapt `operation` to the latest version, in which others may have deleted rows of the same fragments.

    CommitConflictError if they removed the same row, or rewrote the fragment; no files are left behind then.
    """
    own = {fragment.id: fragment for fragment in operation.updated_fragments}
    # In the order in which any thread writes them.
    written: deque[str] = deque()

    def fitted(fragment_id: int) -> Fragment | None:
        """The fragment as it will be; None if all of its rows are gone."""
        read, offsets = rows.fragments[fragment_id], rows.offsets[fragment_id]
        current = _current(latest, read)
        if current.deletion_file == read.deletion_file:
            if fragment_id not in own:
                return None
            return dataclasses.replace(current, deletion_file=own[fragment_id].deletion_file)
        theirs = latest.deleted_rows(current)
        if theirs is None or len(np.intersect1d(theirs, offsets, assume_unique=True)):
            raise CommitConflictError("Another writer changed or deleted the same rows")
        both = union(theirs, offsets)
        if len(both) == current.physical_rows:
            return None
        deletion = write_deletions(latest.store, fragment_id, both, latest.version, kind=DeletionKind.BITMAP)
        written.append(deletion_path(fragment_id, deletion))
        return dataclasses.replace(current, deletion_file=deletion)

    try:
        left = of_fragments(fitted, rows.offsets, is_local=latest.is_local)
    except BaseException:
        delete_quietly(latest.store, written)
        raise
    changed = dataclasses.replace(
        operation,
        updated_fragments=tuple(fragment for fragment in left if fragment is not None),
        removed_fragment_ids=tuple(
            offsets for offsets, fragment in zip(rows.offsets, left, strict=True) if fragment is None
        ),
    )
    return Rebased(changed, tuple(written))


def _current(latest: Snapshot, read: Fragment) -> Fragment:
    try:
        current = latest.fragment(read.id)
    except KeyError:
        raise CommitConflictError("Another writer removed the fragment", fragment=read.id) from None
    # Dropping a column removes files; a new file contains values that were not read.
    if not set(current.files) <= set(read.files):
        raise CommitConflictError("Another writer rewrote columns of the fragment", fragment=read.id)
    return dataclasses.replace(current, physical_rows=read.physical_rows)
