"""The constraints of new tables, and what a key may consist of."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_engine.constraints.hashes import check_key_type
from lance_engine.errors import InvalidArgumentError, UnsupportedTypeError
from lance_engine.schema_tree import Schema
from lance_engine.table.constraints import Constraints, Key, primary_key_name, with_checks, with_key


def declared_key(
    schema: Schema,
    columns: Sequence[str],
    *,
    is_primary: bool = False,
    is_enforced: bool = True,
    name: str | None = None,
) -> Key:
    """A key of these columns; UnsupportedTypeError for a type that no key can have."""
    if isinstance(columns, str) or not columns:
        raise InvalidArgumentError("A key needs a list of at least one column")
    if len(set(columns)) < len(columns):
        raise InvalidArgumentError(f"A column is listed twice in a key: {', '.join(columns)}")
    for column in columns:
        field = schema.field(column)
        if column not in schema.names:
            raise InvalidArgumentError("A field of a struct cannot be part of a key", column=column)
        if field.is_blob:
            raise UnsupportedTypeError("A blob cannot be part of a key", column=column)
        check_key_type(column, field.arrow_type)
    fields = tuple(schema.field(column).id for column in columns)
    default = primary_key_name(columns) if is_primary else f"{'_'.join(columns)}_key"
    return Key(name or default, tuple(columns), fields, is_primary, is_enforced)


def with_constraints(columns: pa.Schema, constraints: Constraints) -> pa.Schema:
    """The columns of a new table with constraints; keys name their columns."""
    schema = Schema.from_arrow(columns)
    for key in constraints.keys:
        declared_key(schema, key.columns)
        schema = with_key(schema, key)
    return with_checks(schema, constraints.checks).to_arrow()
