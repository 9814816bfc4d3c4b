"""Estimates the size of a row in memory before anything is read."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.weak_identity import WeakIdentityDict

# Guesses for variable-width types.
_STRING_BYTES = 32
_ITEMS_PER_LIST = 4

#: The sizes of schemas, which are often those of datasets.
_known: WeakIdentityDict[pa.Schema, int] = WeakIdentityDict()


def estimated_row_bytes(schema: pa.Schema) -> int:
    """Bytes of one row as Arrow arrays; strings and lists are guessed."""
    width = _known.get(schema)
    if width is None:
        width = _known[schema] = sum(_type_bytes(field.type) for field in schema)
    return width


def _type_bytes(arrow_type: pa.DataType) -> int:
    if pa.types.is_dictionary(arrow_type):
        return _type_bytes(arrow_type.index_type)
    if pa.types.is_struct(arrow_type):
        return sum(_type_bytes(arrow_type.field(i).type) for i in range(arrow_type.num_fields))
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * _type_bytes(arrow_type.value_type)
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return 8 + _ITEMS_PER_LIST * _type_bytes(arrow_type.value_type)
    if pa.types.is_null(arrow_type):
        return 0
    try:
        return max(1, int(arrow_type.bit_width) // 8)
    except ValueError:
        return _STRING_BYTES
