"""The rows of packed structs: the fields of each row stored together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from lance_engine.encodings.values import fixed_values, is_variable, value_bytes
from lance_engine.errors import UnsupportedTypeError
from lance_engine.schema_tree import Field

# Two rows must fit into a 2.1 chunk.
MAX_ROW_BYTES: Final = 8000


def packed_bits(arrow_type: pa.DataType) -> int:
    """The size of a fixed-width field in bits."""
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * packed_bits(arrow_type.value_type)
    return int(arrow_type.bit_width)


def is_variable_packed(arrow_type: pa.StructType) -> bool:
    """Whether the rows of a packed struct are stored one by one, as required for strings and lists."""
    return any(is_variable(child.type) or pa.types.is_fixed_size_list(child.type) for child in arrow_type)


def packed_rows(array: pa.StructArray, field: Field, path: str) -> np.ndarray:
    """The bytes of the rows, shape (rows, width of a row); zeros where the struct is null."""
    fields = []
    for child, values in packed_children(array, field, path):
        items = values
        while pa.types.is_fixed_size_list(items.type):
            size = items.type.list_size
            items = items.values.slice(items.offset * size, len(items) * size)
            if items.null_count:
                raise UnsupportedTypeError(
                    "Lists in a packed struct cannot hold nulls before file version 2.2",
                    column=f"{path}.{child.name}",
                    remedy="Remove the packed marker from the field metadata",
                )
        fields.append(np.frombuffer(value_bytes(fixed_values(items)), np.uint8).reshape(len(array), -1))
    rows = np.concatenate(fields, axis=1)
    rows[np.asarray(array.is_null())] = 0
    return rows


def packed_children(array: pa.StructArray, field: Field, path: str) -> Iterator[tuple[Field, pa.Array]]:
    """The fields with their storage; UnsupportedTypeError if one is null and its struct is not."""
    nulls = np.asarray(array.is_null())
    for number, child in enumerate(field.children):
        values = array.field(number)
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count and (np.asarray(values.is_null()) & ~nulls).any():
            raise UnsupportedTypeError(
                "The fields of a packed struct cannot be null",
                column=f"{path}.{child.name}",
                remedy="Remove the packed marker from the field metadata, or make the whole struct null",
            )
        yield child, values
