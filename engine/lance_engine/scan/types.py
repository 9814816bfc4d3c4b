"""Dictionary types: pages hold their values, the schema promises codes."""

from __future__ import annotations

import pyarrow as pa


def without_dictionaries(arrow_type: pa.DataType) -> pa.DataType:
    """The type with every dictionary replaced by its values, at any depth."""
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([_plain_field(arrow_type.field(i)) for i in range(arrow_type.num_fields)])
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(_plain_field(arrow_type.value_field))
    if pa.types.is_list(arrow_type):
        return pa.list_(_plain_field(arrow_type.value_field))
    return arrow_type


def to_declared(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """`array` as `arrow_type`, which differs at most by dictionaries."""
    if array.type.equals(arrow_type):
        return array
    if pa.types.is_dictionary(arrow_type):
        return array.dictionary_encode().cast(arrow_type)
    if pa.types.is_struct(arrow_type):
        children = [
            to_declared(array.field(i), arrow_type.field(i).type) for i in range(arrow_type.num_fields)
        ]
        fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    items = to_declared(array.values, arrow_type.value_type)
    kind = pa.LargeListArray if pa.types.is_large_list(arrow_type) else pa.ListArray
    return kind.from_arrays(array.offsets, items, type=arrow_type, mask=array.is_null())


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(without_dictionaries(field.type))
