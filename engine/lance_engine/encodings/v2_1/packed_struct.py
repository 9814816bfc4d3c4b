"""Packed struct: the fixed-width fields of a row side by side (format 2.1, packed structs)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.packed_rows import is_variable_packed, packed_rows
from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.mini_block import mini_block
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb


def describe(field_bits: Sequence[int]) -> pb.CompressiveEncoding:
    """Rows of fixed-width fields side by side."""
    return pb.CompressiveEncoding(
        packed_struct=pb.PackedStruct(bits_per_value=field_bits, values=flat.describe(sum(field_bits)))
    )


def page(context: PageContext) -> EncodedPage | None:
    """A packed struct column, whose rows may be null but not its fields."""
    array = context.leaf.array
    if not pa.types.is_struct(array.type) or is_variable_packed(array.type):
        return None
    if context.must_zip:
        raise UnsupportedTypeError(
            "A row of this packed struct has too many list levels for any page",
            column=context.leaf.path,
            remedy="Remove the packed marker from the field metadata",
        )
    rows = packed_rows(array, context.leaf.field, context.leaf.path)
    bits = [child.type.bit_width for child in array.type]
    values = kernels.FlatValues(rows, sum(bits), 0, len(array))
    return mini_block(context, stored((values, describe(bits)), rows.nbytes, 0.0))
