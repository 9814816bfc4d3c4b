"""Deleting, replacing and adding individual rows in one version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lance_engine.distinct import union
from lance_engine.format.operations import Append, Delete, Update
from lance_engine.operations.changes import commit_change, removed_on_failure, write_options
from lance_engine.operations.rows import drop_unused, lineage, rows_by_fragment, take_out, with_lineage
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.write.fragments import data_paths, write_fragments
from lance_engine.write.source import conform


@dataclass(frozen=True)
class RowChanges:
    """The changes to the rows of one version.

    `deleted` and `replaced` are row addresses, ascending, distinct and disjoint. `rows` are whole rows of the
    dataset: first one for each of `replaced`, in that order, then the added rows. `columns` are the columns
    with new values in replaced rows. With `inserts_keys`, the added rows have keys that no other writer may
    add at the same time.
    """

    deleted: U64Array
    replaced: U64Array
    rows: Iterable[pa.RecordBatch]
    columns: Sequence[str] = ()
    inserts_keys: bool = False


def change_rows(snapshot: Snapshot, changes: RowChanges) -> Snapshot:
    """Commit `changes` to `snapshot` as one new version.

    CommitConflictError if another writer has changed the same rows since: compute the changes again on the
    latest version (`redo_on_conflict`). SchemaMismatchError if the rows do not match the dataset.
    """
    with removed_on_failure(snapshot.store) as paths:
        rows = conform(changes.rows, snapshot.schema)
        fragments = write_fragments(snapshot.store, snapshot.schema, rows, write_options(snapshot))
        paths += data_paths(fragments)
        fragments = with_lineage(fragments, lineage(snapshot, changes.replaced))
        gone = union(changes.deleted, changes.replaced)
        removal = take_out(snapshot, rows_by_fragment(snapshot, gone))
        paths += removal.paths()
    operation: Append | Delete | Update
    if not len(gone) and not changes.inserts_keys:
        operation = Append(tuple(fragments))
    elif not fragments:
        operation = Delete(removal.updated, removal.removed_ids)
    else:
        modified = tuple(field.id for name in changes.columns for field in snapshot.schema.field(name).walk())
        operation = Update(
            removal.removed_ids,
            removal.updated,
            tuple(fragments),
            modified,
            inserts_keys=changes.inserts_keys,
        )
    committed = commit_change(snapshot, operation, paths, taken=removal.taken)
    drop_unused(committed, removal)
    return committed
