"""Changing values of rows: the rows are taken out of their fragments and written anew to others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.operations import Update
from lance_engine.maintenance.changes import commit_change, removed_on_failure, write_options
from lance_engine.maintenance.retry import redo_on_conflict
from lance_engine.maintenance.rows import (
    Filter,
    drop_unused,
    joined,
    lineage,
    rows_by_fragment,
    scan,
    take_out,
    with_lineage,
)
from lance_engine.maintenance.values import ColumnValues, Compiler, Value, column_values
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.types import Schema
from lance_engine.write.fragments import data_paths, write_fragments


def update(
    snapshot: Snapshot,
    values: Mapping[str, Value],
    where: Filter = None,
    *,
    compiler: Compiler | None = None,
) -> Snapshot:
    """Give the columns named in `values` new values in the rows that pass `where`, None meaning all.

    A value is SQL text over the columns of the row as it was, or a function from the batch of these rows to
    an array. Stable row ids stay; without them an updated row has a new id.
    """
    if not values:
        raise ValueError("update needs at least one column")

    def once(snapshot: Snapshot) -> Snapshot:
        return _update(snapshot, values, where, compiler)

    return redo_on_conflict(snapshot, once)


def _update(
    snapshot: Snapshot, values: Mapping[str, Value], where: Filter, compiler: Compiler | None
) -> Snapshot:
    schema = snapshot.schema
    arrow = schema.to_arrow()
    _check_columns(schema, values)
    computed = [
        column_values(name, value, arrow, arrow.field(name).type, compiler) for name, value in values.items()
    ]
    addresses: list[U64Array] = []
    rows = scan(snapshot, [*schema.names, ROW_ADDRESS], where)

    def changed() -> Iterator[pa.RecordBatch]:
        for batch in rows.to_batches():
            addresses.append(batch.column(batch.num_columns - 1).to_numpy())
            yield _changed(batch.select(schema.names), computed)

    with removed_on_failure(snapshot.store) as paths:
        fragments = write_fragments(snapshot.store, schema, changed(), write_options(snapshot))
        paths += data_paths(fragments)
        moved = joined(addresses)
        fragments = with_lineage(fragments, lineage(snapshot, moved))
        removal = take_out(snapshot, rows_by_fragment(snapshot, moved))
        paths += removal.paths()
    modified = tuple(field.id for name in values for field in schema.field(name).walk())
    operation = Update(removal.removed_ids, removal.updated, tuple(fragments), modified)
    committed = commit_change(snapshot, operation, paths, taken=removal.taken)
    drop_unused(committed, removal)
    return committed


def _check_columns(schema: Schema, values: Mapping[str, Value]) -> None:
    for name in values:
        schema.field(name)
        if name not in schema.names:
            raise UnsupportedFeatureError(
                "A field inside a struct cannot be updated by itself",
                column=name,
                remedy="Update the whole struct column",
            )


def _changed(batch: pa.RecordBatch, computed: list[ColumnValues]) -> pa.RecordBatch:
    """The batch with the new values; those are computed from the old ones throughout."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns |= {column.name: column.compute(batch) for column in computed}
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
