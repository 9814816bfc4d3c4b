"""Deleting, replacing and adding individual rows in one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from lance_engine.distinct import union
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.operations import Append, Delete, Update
from lance_engine.operations.changes import commit_change, removed_on_failure, write_options
from lance_engine.operations.rows import (
    drop_unused,
    joined,
    joined_lineage,
    read_rows,
    rows_by_fragment,
    take_out,
    with_lineage,
)
from lance_engine.scan.partial import shared_readers
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.schema_tree import Schema
from lance_engine.table.constraints import has_key_within
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.write.fragments import data_paths, write_fragments
from lance_engine.write.source import conform

# Rows whose other columns are read at once.
_STEP_ROWS: Final = 1 << 14


@dataclasses.dataclass(frozen=True)
class RowChanges:
    """The changes to the rows of one version.

    `deleted` are row addresses, ascending and distinct. `replaced` are batches with the addresses of other
    rows (`_rowaddr`), each once, and new values of some columns; the other columns are read from the version.
    `added` are whole new rows. With `inserts_keys`, these have keys that no other writer may add at the same
    time: the values of the columns `matched_by`, if known.
    """

    deleted: U64Array = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.uint64))
    replaced: Iterable[pa.RecordBatch] = ()
    added: Iterable[pa.RecordBatch] = ()
    inserts_keys: bool = False
    matched_by: Sequence[str] = ()


def change_rows(snapshot: Snapshot, changes: RowChanges) -> Snapshot:
    """Commit `changes` to `snapshot` as one new version; without changes, the result is `snapshot`.

    CommitConflictError if another writer has changed the same rows since: compute the changes again on the
    latest version (`redo_on_conflict`). SchemaMismatchError if the rows do not match the dataset.
    """
    if ROW_ADDRESS in snapshot.schema.names:
        raise UnsupportedFeatureError(
            f"Rows of a table with a column named {ROW_ADDRESS}, like their addresses, cannot be changed",
            path=snapshot.uri,
            remedy="Write a new table in which the column has another name",
        )
    moved: list[U64Array] = []
    modified: dict[str, None] = {}
    added = 0

    def rows() -> Iterator[pa.RecordBatch]:
        for addresses, columns, batch in _replacing(snapshot, changes.replaced):
            moved.append(addresses)
            modified.update(dict.fromkeys(columns))
            yield batch
        nonlocal added
        for batch in conform(changes.added, snapshot.schema):
            added += batch.num_rows
            yield batch

    with removed_on_failure(snapshot.store) as paths:
        fragments = write_fragments(snapshot.store, snapshot.schema, rows(), write_options(snapshot))
        paths += data_paths(fragments)
        if not fragments and not len(changes.deleted):
            return snapshot
        fragments = with_lineage(fragments, joined_lineage(snapshot, moved))
        gone = union(changes.deleted, np.sort(joined(moved)))
        removal = take_out(snapshot, rows_by_fragment(snapshot, gone))
        paths += removal.paths()
    operation: Append | Delete | Update
    if not len(gone) and not changes.inserts_keys:
        operation = Append(tuple(fragments))
    elif not fragments:
        operation = Delete(removal.updated, removal.removed_ids)
    else:
        ids = tuple(field.id for name in modified for field in snapshot.schema.field(name).walk())
        operation = Update(
            removal.removed_ids,
            removal.updated,
            tuple(fragments),
            ids,
            inserts_keys=changes.inserts_keys and not has_key_within(snapshot.schema, changes.matched_by),
            inserts_rows=added > 0,
        )
    committed = commit_change(snapshot, operation, paths, taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def _replacing(
    snapshot: Snapshot, replaced: Iterable[pa.RecordBatch]
) -> Iterator[tuple[U64Array, list[str], pa.RecordBatch]]:
    """Whole rows, with their addresses, which ascend within each batch, and the columns with new values."""
    names = snapshot.schema.names
    reader_for = shared_readers(snapshot)
    for batch in replaced:
        changed = [name for name in batch.schema.names if name != ROW_ADDRESS]
        schema = Schema(tuple(snapshot.schema.field(name) for name in changed))
        rest = [name for name in names if name not in changed]
        for start in range(0, batch.num_rows, _STEP_ROWS):
            part = batch.slice(start, _STEP_ROWS)
            addresses = part.column(ROW_ADDRESS).to_numpy().astype(np.uint64)
            order = np.argsort(addresses, kind="stable")
            if (order[1:] < order[:-1]).any():
                addresses, part = addresses[order], part.take(pa.array(order))
            [values] = conform([part.select(changed)], schema)
            columns = dict(zip(changed, values.columns, strict=True))
            if rest:
                kept = read_rows(snapshot, addresses, rest, reader_for)
                columns |= dict(zip(rest, kept.columns, strict=True))
            yield addresses, changed, pa.RecordBatch.from_arrays([columns[name] for name in names], names)
