"""Deleting rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_engine.format.operations import Delete
from lance_engine.maintenance.changes import commit_change
from lance_engine.maintenance.retry import redo_on_conflict
from lance_engine.maintenance.rows import (
    Filter,
    U64Array,
    drop_unused,
    matching_addresses,
    rows_by_fragment,
    take_out,
)
from lance_engine.table.snapshot import Snapshot


def delete(snapshot: Snapshot, where: Filter = None, *, row_ids: npt.ArrayLike | None = None) -> Snapshot:
    """Delete the rows that pass `where`, or those with these row ids.

    Only the columns of the filter are read. A new version is made even if no row passes. RowNotFoundError
    for row ids that do not exist.
    """
    if (where is None) == (row_ids is None):
        raise ValueError("delete needs either a filter or row ids; truncate() removes all rows")

    def once(snapshot: Snapshot) -> Snapshot:
        if row_ids is None:
            addresses = matching_addresses(snapshot, where)
        else:
            addresses = np.unique(snapshot.resolve_row_ids(row_ids))
        return delete_rows(snapshot, addresses, "" if where is None else str(where))

    return redo_on_conflict(snapshot, once)


def delete_rows(snapshot: Snapshot, addresses: U64Array, predicate: str) -> Snapshot:
    """Commit the deletion of rows at ascending, distinct addresses; `predicate` is for people."""
    removal = take_out(snapshot, rows_by_fragment(snapshot, addresses))
    operation = Delete(removal.updated, removal.removed_ids, predicate)
    committed = commit_change(snapshot, operation, removal.paths(), taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def truncate(snapshot: Snapshot) -> Snapshot:
    """Remove all rows; schema, metadata and earlier versions stay."""

    def once(snapshot: Snapshot) -> Snapshot:
        operation = Delete((), tuple(fragment.id for fragment in snapshot.fragments), "true")
        return commit_change(snapshot, operation)

    return redo_on_conflict(snapshot, once)
