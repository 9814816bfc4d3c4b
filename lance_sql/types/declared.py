"""The types in which DuckDB is offered columns."""

from __future__ import annotations

import pyarrow as pa


def declared_type(kind: pa.DataType) -> pa.DataType:
    """`kind`, or a type that DuckDB can read instead: a float16 or decimal256 column blocks the table."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.float64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(declared_type(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_declared_item(kind), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_declared_item(kind))
    if pa.types.is_list(kind):
        return pa.list_(_declared_item(kind))
    if pa.types.is_map(kind):
        key, item = (
            field.with_type(declared_type(field.type)) for field in (kind.key_field, kind.item_field)
        )
        return pa.map_(key, item, kind.keys_sorted)
    return kind


def _declared_item(kind: pa.DataType) -> pa.Field:
    return kind.value_field.with_type(declared_type(kind.value_field.type))
