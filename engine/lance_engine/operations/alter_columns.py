"""Dropping and renaming columns, and changing their types."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from lance_engine.errors import InvalidArgumentError, LanceError, SchemaMismatchError, UnsupportedFeatureError
from lance_engine.expr import build
from lance_engine.expr.evaluate import evaluate_value
from lance_engine.expr.value_types import value_type
from lance_engine.format.operations import Merge, Project
from lance_engine.operations.changes import commit_change
from lance_engine.operations.column_files import extend_fragments, numbered_fields
from lance_engine.operations.constraints import refuse_constrained
from lance_engine.operations.nulls import require_no_nulls
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.system import RESERVED_NAMES
from lance_engine.schema_tree import Field, Schema
from lance_engine.table.constraints import constraints_of
from lance_engine.table.snapshot import Snapshot

#: Columns, and a function that computes values from a batch of them.
Values = tuple[Sequence[str], Callable[[pa.RecordBatch], pa.Array]]


def drop_columns(snapshot: Snapshot, columns: Sequence[str]) -> Snapshot:
    """Remove columns from the schema; ``a.b`` is field ``b`` of the struct ``a``. No data is rewritten."""
    if isinstance(columns, str) or not columns:
        raise InvalidArgumentError("drop_columns takes a list of at least one column")

    def once(snapshot: Snapshot) -> Snapshot:
        dropped = {snapshot.schema.field(path).id for path in columns}
        for path in columns:
            refuse_constrained(snapshot, path.partition(".")[0])
        schema = _mapped(snapshot.schema, lambda field: None if field.id in dropped else field)
        return commit_change(snapshot, Project(schema, preserves_nullability=True))

    return redo_on_conflict(snapshot, once)


def alter_column(
    snapshot: Snapshot,
    column: str,
    *,
    name: str | None = None,
    type: pa.DataType | pa.Field | None = None,
    nullable: bool | None = None,
    values: Values | None = None,
    progress: ProgressOption = None,
) -> Snapshot:
    """Rename a column, cast its values to another type, or change whether it is nullable.

    `values` computes what the column of the new `type` holds, in place of a cast. A field as `type` brings
    its extension type.
    Only a change of type rewrites data, that of this column. SchemaMismatchError if a name is taken or a
    column holds nulls that the change forbids; InvalidFilterError if a value does not fit the new type.
    """
    if name is None and type is None and nullable is None:
        raise InvalidArgumentError("alter_column needs a new name, type or nullability")
    if type is not None and not isinstance(type, pa.Field):
        type = pa.field("type", _arrow_type(type))

    def once(snapshot: Snapshot) -> Snapshot:
        reporter = Reporter(progress)
        field = snapshot.schema.field(column)
        if name is not None or type is not None:
            refuse_constrained(snapshot, column.partition(".")[0], keys=False)
        if nullable:
            _refuse_null_keys(snapshot, column)
        tightened = nullable is False and field.nullable
        if tightened:
            require_no_nulls(snapshot, column, reporter)
        changed = field if nullable is None else dataclasses.replace(field, nullable=nullable)
        if name is not None:
            _require_free(snapshot.schema, column, field, name)
            changed = dataclasses.replace(changed, name=name)
        if type is None or (values is None and field.arrow_type.equals(type.type) and not field.is_json):
            schema = _mapped(snapshot.schema, lambda other: changed if other.id == field.id else other)
            _check_names(schema)
            return commit_change(snapshot, Project(schema, preserves_nullability=not tightened))
        return _cast(snapshot, column, changed, type, values, reporter, preserves_nullability=not tightened)

    return redo_on_conflict(snapshot, once)


def _arrow_type(type: Any) -> pa.DataType:
    """A type, given as such or by a name that pyarrow supports."""
    try:
        return pa.field("type", type).type
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"type must be an Arrow type, not {type!r}", remedy="Pass for example pa.int64()"
        ) from None


def _cast(
    snapshot: Snapshot,
    column: str,
    changed: Field,
    kind: pa.Field,
    values: Values | None,
    reporter: Reporter,
    *,
    preserves_nullability: bool,
) -> Snapshot:
    if column not in snapshot.schema.names:
        raise UnsupportedFeatureError(
            "Changing the type of a struct field is not supported",
            column=column,
            remedy="Add a new column and drop the old one",
        )
    # The extension of the old type does not apply to the new one.
    metadata = {
        key: value
        for key, value in (changed.to_arrow().metadata or {}).items()
        if not key.startswith(b"ARROW:extension:")
    }
    metadata |= kind.metadata or {}
    arrow = pa.field(changed.name, kind.type, changed.nullable, metadata)
    added = numbered_fields(snapshot, pa.schema([arrow]))
    schema = _mapped(snapshot.schema, lambda other: added.fields[0] if other.id == changed.id else other)
    _check_names(schema)
    old = build.column(snapshot.schema.to_arrow(), [column])
    needed, new = values or ([column], lambda batch: evaluate_value(old, batch, value_type(kind.type)))

    def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return pa.RecordBatch.from_arrays([new(batch)], names=[changed.name])
        except LanceError as error:
            raise error.at(column=column) from error.__cause__

    extended = extend_fragments(snapshot, added, needed, compute, reporter)
    operation = Merge(extended.fragments, schema, preserves_nullability=preserves_nullability)
    return commit_change(snapshot, operation, extended.paths)


def _refuse_null_keys(snapshot: Snapshot, column: str) -> None:
    if any(key.is_primary and column in key.columns for key in constraints_of(snapshot.schema).keys):
        raise SchemaMismatchError(
            "A column of the primary key cannot be nullable",
            column=column,
            remedy="Drop the key first: ALTER TABLE t DROP PRIMARY KEY",
        )


def _require_free(schema: Schema, column: str, field: Field, name: str) -> None:
    """SchemaMismatchError if another field of the same struct has the name."""
    *_, parent, _ = (None, *schema.path(column, column.split(".")))
    if parent is not None and any(child.name == name and child.id != field.id for child in parent.children):
        raise SchemaMismatchError(
            f"The struct of '{column}' already has a field '{name}'",
            column=column,
            remedy="Choose another name",
        )


def _mapped(schema: Schema, change: Callable[[Field], Field | None]) -> Schema:
    """The schema with fields replaced, or removed if `change` returns None."""
    fields = _mapped_fields(schema.fields, change)
    if not fields:
        raise SchemaMismatchError("Cannot drop all columns", remedy="Keep at least one column")
    return Schema(fields, schema.metadata)


def _mapped_fields(
    fields: tuple[Field, ...], change: Callable[[Field], Field | None], parent: str = ""
) -> tuple[Field, ...]:
    mapped = []
    for field in fields:
        changed = change(field)
        if changed is None:
            continue
        path = f"{parent}{field.name}"
        if changed.children and changed.id == field.id:
            children = _mapped_fields(changed.children, change, f"{path}.")
            if len(children) < len(changed.children) and not (children and field.logical_type == "struct"):
                raise SchemaMismatchError(
                    "The type of the column requires this field",
                    column=path,
                    remedy=f"Drop the whole column '{path}'",
                )
            changed = dataclasses.replace(changed, children=children)
        mapped.append(changed)
    return tuple(mapped)


def _check_names(schema: Schema) -> None:
    # Names that are empty, taken or contain dots are found where a schema is made from Arrow.
    Schema.from_arrow(schema.to_arrow())
    for name in schema.names:
        if name in RESERVED_NAMES or not name:
            raise SchemaMismatchError(f"Invalid column name '{name}'", remedy="Choose another name")
