"""Pages of packed structs: the fixed-width fields of each row side by side."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import EncodedPage
from lance_engine.errors import UnsupportedTypeError
from lance_engine.types import Field
from lance_engine.write.candidate import stored
from lance_engine.write.page_context import PageContext
from lance_engine.write.values import fixed_values, value_bytes

# Two rows must fit into a 2.1 chunk.
MAX_ROW_BYTES = 8000


def packed_page(context: PageContext, array: pa.StructArray) -> EncodedPage:
    """A packed struct column, whose rows may be null but not its fields."""
    if context.must_zip:
        raise UnsupportedTypeError(
            "A row of this packed struct has too many list levels for any page",
            column=context.leaf.path,
            remedy="Remove the packed marker from the field metadata",
        )
    rows = packed_rows(array, context.leaf.field, context.leaf.path)
    bits = [child.type.bit_width for child in array.type]
    values = kernels.FlatValues(rows, sum(bits), 0, len(array))
    return context.mini_block(stored((values, v2_1.packed_struct(bits)), rows.nbytes, 0.0))


def packed_rows(array: pa.StructArray, field: Field, path: str) -> np.ndarray:
    """The bytes of the rows, shape (rows, width of a row); zeros where the struct is null."""
    nulls = np.asarray(array.is_null())
    fields = []
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
        fields.append(np.frombuffer(value_bytes(fixed_values(values)), np.uint8).reshape(len(array), -1))
    rows = np.concatenate(fields, axis=1)
    rows[nulls] = 0
    return rows
