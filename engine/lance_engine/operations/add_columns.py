"""Adding columns, without rewriting those that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa

from lance_engine.errors import InvalidArgumentError, SchemaMismatchError
from lance_engine.format.operations import Merge
from lance_engine.operations.changes import commit_change
from lance_engine.operations.column_files import Extended, extend_fragments, numbered_fields
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.values import (
    Compiler,
    Value,
    column_values,
    columns_read,
)
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.partial import scan
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.schema_tree import Schema
from lance_engine.table.snapshot import Snapshot
from lance_engine.write.blob_schema import with_blobs_v2
from lance_engine.write.check import check_writable
from lance_engine.write.options import VERSIONS

# How the values of a new column are computed; a type creates a column of nulls.
NewColumn: TypeAlias = "Value | pa.DataType"
BatchesFunction: TypeAlias = Callable[[pa.RecordBatch], pa.RecordBatch]
NewColumns: TypeAlias = "Mapping[str, NewColumn] | pa.Field | pa.Schema | BatchesFunction"


def add_columns(
    snapshot: Snapshot,
    columns: NewColumns,
    *,
    read: Sequence[str] | None = None,
    compiler: Compiler | None = None,
    progress: ProgressOption = None,
) -> Snapshot:
    """Add nullable columns after the existing ones.

    A value is SQL text over the other columns, or a function from a batch to an array, whose type is found by
    a call with the first rows; or an Arrow type, field or schema for columns of nulls, which write no file.
    A single function gives a batch of all new columns for a batch; its fields may have metadata. `read` names
    the columns that functions get, all of them by default.
    """
    if isinstance(columns, pa.Field):
        columns = pa.schema([columns])

    def once(snapshot: Snapshot) -> Snapshot:
        if isinstance(columns, pa.Schema):
            return _add_nulls(snapshot, columns)
        if not isinstance(columns, Mapping):
            if not callable(columns):
                raise InvalidArgumentError(
                    f"New columns must be a dict, a function, or an Arrow field or schema, not {columns!r}",
                    remedy='Write for example add_columns({"total": "price * quantity"})',
                )
            return _add(snapshot, [], read, columns, Reporter(progress))
        nulls = pa.schema(
            [(name, value) for name, value in columns.items() if isinstance(value, pa.DataType)]
        )
        if len(nulls) == len(columns):
            return _add_nulls(snapshot, nulls)
        return _add_each(snapshot, columns, read, compiler, Reporter(progress))

    return redo_on_conflict(snapshot, once)


def _add_nulls(snapshot: Snapshot, fields: pa.Schema) -> Snapshot:
    required = [field.name for field in fields if not field.nullable]
    if required and snapshot.num_rows:
        raise SchemaMismatchError(
            "A column of nulls must be declared nullable",
            column=required[0],
            remedy="Provide values for the column",
        )
    schema = with_columns(snapshot, fields)[1]
    if (version := VERSIONS.get(snapshot.manifest.storage_version or "")) is not None:
        check_writable(schema, version)  # else no later change could write its rows
    return _commit(snapshot, Extended(tuple(snapshot.fragments), ()), schema)


def _add_each(
    snapshot: Snapshot,
    columns: Mapping[str, NewColumn],
    read: Sequence[str] | None,
    compiler: Compiler | None,
    reporter: Reporter,
) -> Snapshot:
    """Add columns with separate values."""
    arrow = snapshot.schema.to_arrow()
    computed = {
        name: column_values(name, value, arrow, None, compiler)
        for name, value in columns.items()
        if not isinstance(value, pa.DataType)
    }
    if read is not None:
        # Columns that are read for a function; SQL expressions name their own.
        read = [*read, *(name for column in computed.values() for name in column.columns or ())]
    else:
        read = columns_read(computed.values(), snapshot.schema)
    kinds = [
        (name, value if isinstance(value, pa.DataType) else computed[name].type)
        for name, value in columns.items()
    ]

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            computed[name].compute(batch) if name in computed else pa.nulls(batch.num_rows, kind)
            for name, kind in kinds
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in kinds])

    return _add(snapshot, kinds, read, compute, reporter)


def _add(
    snapshot: Snapshot,
    kinds: Sequence[tuple[str, pa.DataType | None]],
    read: Sequence[str] | None,
    function: BatchesFunction,
    reporter: Reporter,
) -> Snapshot:
    """Add the columns that `function` returns; without types in `kinds`, it first gets some rows."""
    names = snapshot.schema.names if read is None else list(dict.fromkeys(read))
    if kinds and all(kind is not None for _, kind in kinds):
        fields = pa.schema(kinds)
    else:
        fields = _checked(function, _first_batch(snapshot, names)).schema
        fields = pa.schema([field.with_nullable(True) for field in fields])
    added, schema = with_columns(snapshot, fields)
    if not added.fields:
        raise InvalidArgumentError("add_columns needs at least one column")
    extended = extend_fragments(snapshot, added, names, lambda batch: _checked(function, batch), reporter)
    return _commit(snapshot, extended, schema)


def _checked(function: BatchesFunction, batch: pa.RecordBatch) -> pa.RecordBatch:
    result = function(batch)
    if not isinstance(result, pa.RecordBatch):
        raise InvalidArgumentError(
            f"The function for new columns returned {type(result).__name__}, not a RecordBatch"
        )
    if result.num_rows != batch.num_rows:
        raise SchemaMismatchError(
            f"Got {result.num_rows} rows of new columns for {batch.num_rows} rows",
            remedy="Return exactly one row per row of the batch",
        )
    return result


def _commit(snapshot: Snapshot, extended: Extended, schema: Schema) -> Snapshot:
    operation = Merge(extended.fragments, schema, preserves_nullability=True)
    return commit_change(snapshot, operation, extended.paths)


def _first_batch(snapshot: Snapshot, columns: list[str]) -> pa.RecordBatch:
    scanner = scan(snapshot, columns)
    for batch in scanner.to_batches():
        return batch
    return pa.RecordBatch.from_pylist([], schema=scanner.schema)


def with_columns(snapshot: Snapshot, fields: pa.Schema) -> tuple[Schema, Schema]:
    """The new fields with their ids, and the schema including them."""
    taken = {*snapshot.schema.names, *SYSTEM_FIELDS}
    for name in fields.names:
        if name in taken:
            raise SchemaMismatchError(
                f"Column '{name}' already exists", column=name, remedy="Choose another name"
            )
    if snapshot.manifest.storage_version == "2.2":
        fields = with_blobs_v2(fields)
    added = numbered_fields(snapshot, fields)
    return added, Schema((*snapshot.schema.fields, *added.fields), snapshot.schema.metadata)
