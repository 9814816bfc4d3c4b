"""Adding columns, without rewriting those that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import pyarrow as pa

from lance_engine.errors import SchemaMismatchError
from lance_engine.format.operations import Merge
from lance_engine.maintenance.changes import commit_change
from lance_engine.maintenance.column_files import Extended, extend_fragments, next_field_id
from lance_engine.maintenance.retry import redo_on_conflict
from lance_engine.maintenance.rows import scan
from lance_engine.maintenance.values import ColumnValues, Compiler, Value, column_values
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.table.snapshot import Snapshot
from lance_engine.types import Schema

# How the values of a new column are made; a type makes a column of nulls.
NewColumn: TypeAlias = "Value | pa.DataType"


def add_columns(
    snapshot: Snapshot,
    columns: Mapping[str, NewColumn] | pa.Field | pa.Schema,
    *,
    compiler: Compiler | None = None,
) -> Snapshot:
    """Add nullable columns after those that exist.

    A value is SQL text over the other columns, or a function from a batch of all columns to an array, whose
    type is found by a call with the first rows; or an Arrow type, field or schema for columns of nulls, which
    write no file.
    """
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])

    def once(snapshot: Snapshot) -> Snapshot:
        if isinstance(columns, pa.Schema):
            return _add_nulls(snapshot, columns)
        nulls = pa.schema(
            [(name, value) for name, value in columns.items() if isinstance(value, pa.DataType)]
        )
        if len(nulls) == len(columns):
            return _add_nulls(snapshot, nulls)
        return _add(snapshot, columns, compiler)

    return redo_on_conflict(snapshot, once)


def _add_nulls(snapshot: Snapshot, fields: pa.Schema) -> Snapshot:
    required = [field.name for field in fields if not field.nullable]
    if required and snapshot.num_rows:
        raise SchemaMismatchError(
            "A column of nulls must be nullable", column=required[0], remedy="Give the column values"
        )
    schema = _with_columns(snapshot, fields)[1]
    return _commit(snapshot, Extended(tuple(snapshot.fragments), ()), schema)


def _add(snapshot: Snapshot, columns: Mapping[str, NewColumn], compiler: Compiler | None) -> Snapshot:
    arrow = snapshot.schema.to_arrow()
    computed = {
        name: column_values(name, value, arrow, None, compiler)
        for name, value in columns.items()
        if not isinstance(value, pa.DataType)
    }
    read = _columns_read(computed, snapshot.schema)
    unknown = [column for column in computed.values() if column.type is None]
    first = _first_batch(snapshot, read) if unknown else None
    fields = []
    for name, value in columns.items():
        kind = value if isinstance(value, pa.DataType) else computed[name].type
        fields.append(pa.field(name, computed[name].compute(first).type if kind is None else kind))
    added, schema = _with_columns(snapshot, pa.schema(fields))

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            computed[field.name].compute(batch)
            if field.name in computed
            else pa.nulls(batch.num_rows, field.type)
            for field in fields
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[field.name for field in fields])

    return _commit(snapshot, extend_fragments(snapshot, added, read, compute), schema)


def _commit(snapshot: Snapshot, extended: Extended, schema: Schema) -> Snapshot:
    operation = Merge(extended.fragments, schema, preserves_nullability=True)
    return commit_change(snapshot, operation, extended.paths)


def _columns_read(computed: Mapping[str, ColumnValues], schema: Schema) -> list[str]:
    """What has to be read, in the order of the schema; everything for a function."""
    wanted: set[str] = set()
    for column in computed.values():
        wanted.update(schema.names if column.columns is None else column.columns)
    return [name for name in schema.names if name in wanted]


def _first_batch(snapshot: Snapshot, columns: list[str]) -> pa.RecordBatch:
    scanner = scan(snapshot, columns)
    for batch in scanner.to_batches():
        return batch
    return pa.RecordBatch.from_pylist([], schema=scanner.schema)


def _with_columns(snapshot: Snapshot, fields: pa.Schema) -> tuple[Schema, Schema]:
    """The added fields with their ids, and the whole schema."""
    taken = {*snapshot.schema.names, *SYSTEM_FIELDS}
    for name in fields.names:
        if name in taken:
            raise SchemaMismatchError(
                f"There is already a column '{name}'", column=name, remedy="Choose another name"
            )
    added = Schema.from_arrow(fields, next_field_id(snapshot))
    return added, Schema((*snapshot.schema.fields, *added.fields), snapshot.schema.metadata)
