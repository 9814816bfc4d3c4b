"""Deleting rows."""

from __future__ import annotations

from typing import Final

import numpy.typing as npt

from lance_engine.distinct import distinct
from lance_engine.errors import InvalidArgumentError
from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.operations import Delete
from lance_engine.operations.changes import commit_change
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.rows import (
    U64Array,
    drop_unused,
    joined,
    matching_addresses,
    rows_by_fragment,
    take_out,
)
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.partial import Filter
from lance_engine.scan.splits import ScanSplit, split_rows
from lance_engine.table.snapshot import Snapshot

# Number of rows between two progress reports of the search.
_REPORTED_ROWS: Final = 1 << 22


def delete(
    snapshot: Snapshot,
    where: Filter = None,
    *,
    row_ids: npt.ArrayLike | None = None,
    progress: ProgressOption = None,
) -> Snapshot:
    """Delete the rows that pass `where`, or those with these row ids.

    Only the columns of the filter are read. A new version is created even if no row passes. RowNotFoundError
    for row ids that do not exist.
    """
    if (where is None) == (row_ids is None):
        raise InvalidArgumentError("delete needs a filter or row ids; use truncate() to delete all rows")

    def once(snapshot: Snapshot) -> Snapshot:
        reporter = Reporter(progress)
        if row_ids is None:
            addresses = _matching(snapshot, where, reporter)
        else:
            reporter.begin("looking up row ids")
            addresses = distinct(snapshot.resolve_row_ids(row_ids))
        reporter.begin("deleting rows", len(addresses))
        return delete_rows(snapshot, addresses, "" if where is None else str(where))

    return redo_on_conflict(snapshot, once)


def _matching(snapshot: Snapshot, where: Filter, reporter: Reporter) -> U64Array:
    reporter.begin("finding rows", snapshot.physical_rows)
    if reporter.is_silent:
        return matching_addresses(snapshot, where)
    addresses: list[U64Array] = []
    read: list[ScanSplit] = []
    splits = split_rows(snapshot.fragments, -(-snapshot.num_rows // _REPORTED_ROWS) or 1)
    for number, split in enumerate(splits, 1):
        read.append(split)
        rows = sum(part.stop - part.start for part in read)
        if rows >= _REPORTED_ROWS or number == len(splits):
            addresses.append(matching_addresses(snapshot, where, read))
            reporter.advance(rows)
            read = []
    reporter.end()
    return joined(addresses)


def delete_rows(snapshot: Snapshot, addresses: U64Array, predicate: str) -> Snapshot:
    """Commit the deletion of rows at ascending, distinct addresses; `predicate` is only informational."""
    removal = take_out(snapshot, rows_by_fragment(snapshot, addresses))
    operation = Delete(removal.updated, removal.removed_ids, predicate)
    committed = commit_change(snapshot, operation, removal.paths(), taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def truncate(snapshot: Snapshot) -> Snapshot:
    """Remove all rows; schema, metadata and earlier versions are kept."""

    def once(snapshot: Snapshot) -> Snapshot:
        operation = Delete((), tuple(fragment_ids(snapshot.fragments).tolist()), "true")
        return commit_change(snapshot, operation)

    return redo_on_conflict(snapshot, once)
