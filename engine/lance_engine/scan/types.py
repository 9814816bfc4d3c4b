"""Dictionary types: pages hold their values, the schema promises codes."""

from __future__ import annotations

import pyarrow as pa

from lance_engine import kernels


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
    if pa.types.is_map(arrow_type):
        return pa.map_(_plain_field(arrow_type.key_field), _plain_field(arrow_type.item_field))
    return arrow_type


def to_declared(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """`array` as `arrow_type`, which differs at most by dictionaries.

    `kernels.BatchTooLargeError` asks for fewer rows: the codes are too narrow for the values, which may come
    from several pages with dictionaries of their own.
    """
    if array.type.equals(arrow_type):
        return array
    if pa.types.is_dictionary(arrow_type):
        codes = array.dictionary_encode()
        width = arrow_type.index_type.bit_width - pa.types.is_signed_integer(arrow_type.index_type)
        if len(codes.dictionary) > 1 << width:
            raise kernels.BatchTooLargeError(
                f"{len(codes.dictionary)} values for {arrow_type.index_type} codes"
            )
        return codes.cast(arrow_type)
    if pa.types.is_struct(arrow_type):
        children = [
            to_declared(array.field(i), arrow_type.field(i).type) for i in range(arrow_type.num_fields)
        ]
        fields = [arrow_type.field(i) for i in range(arrow_type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    if pa.types.is_map(arrow_type):
        keys = to_declared(array.keys, arrow_type.key_type)
        items = to_declared(array.items, arrow_type.item_type)
        return pa.MapArray.from_arrays(array.offsets, keys, items, type=arrow_type, mask=array.is_null())
    items = to_declared(array.values, arrow_type.value_type)
    kind = pa.LargeListArray if pa.types.is_large_list(arrow_type) else pa.ListArray
    return kind.from_arrays(array.offsets, items, type=arrow_type, mask=array.is_null())


def _plain_field(field: pa.Field) -> pa.Field:
    return field.with_type(without_dictionaries(field.type))
