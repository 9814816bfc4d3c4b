"""Fixed-size lists of flat items: vectors, with validity of their items if these are nullable (2.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.full_zip import WHOLE_BYTES, full_zip, plain_full_zip
from lance_engine.encodings.v2_1.mini_block import mini_block
from lance_engine.encodings.values import FixedValues, ListLayer, list_layers, value_bytes
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb

# Bits of a list of booleans: eight rows with two validity layers must fit into a chunk.
_WIDEST_CHUNKED_ROW = 10_000


def describe(layers: Sequence[tuple[int, bool]], item_bits: int) -> pb.CompressiveEncoding:
    """Lists of (dimension, items nullable), outermost first, around flat items; 0 bits: all are null."""
    encoding = flat.describe(item_bits) if item_bits else pb.CompressiveEncoding(constant=pb.Constant())
    for dimension, has_validity in reversed(layers):
        encoding = pb.CompressiveEncoding(
            fixed_size_list=pb.FixedSizeList(
                items_per_value=dimension, values=encoding, has_validity=has_validity
            )
        )
    return encoding


def page(context: PageContext) -> EncodedPage | None:
    """Fixed-size lists under any levels; they are never compressed."""
    array = context.leaf.array
    if not pa.types.is_fixed_size_list(array.type):
        return None
    layers, items = list_layers(array, context.levels)
    per_row = math.prod(dimension for dimension, _, _ in layers)
    described = [(dimension, bitmap is not None) for dimension, bitmap, _ in layers]
    encoding = describe(described, items.bits)
    row_bits = per_row * items.bits
    # Full-zip rows have whole bytes, and some readers fail on rows with bits and their validity.
    nulls = any(has_validity for _, has_validity in described)
    can_zip = row_bits % 8 == 0 and not (items.bits == 1 and nulls)
    wide = row_bits >= WHOLE_BYTES * 8 and context.settings.structure != "miniblock"
    # Chunks hold values; lists of the type null have none.
    if can_zip and (context.full_zip or wide or row_bits > _WIDEST_CHUNKED_ROW or items.bits == 0):
        return _full_zip(context, layers, items, encoding)
    if context.must_zip or row_bits > _WIDEST_CHUNKED_ROW:
        raise UnsupportedTypeError(
            f"A fixed-size list of {per_row} booleans is too wide for this page",
            column=context.leaf.path,
            remedy="Cast the items to int8",
        )
    rows = context.levels.slots
    values = kernels.FixedSizeListValues(layers, items.buffer, items.bits, items.offset, rows)
    return mini_block(context, stored((values, encoding), rows * row_bits // 8, 0.0))


def _full_zip(
    context: PageContext, layers: list[ListLayer], items: FixedValues, encoding: pb.CompressiveEncoding
) -> EncodedPage:
    levels = context.levels
    validity_bytes, per_row = 0, 1
    for dimension, bitmap, _ in layers:
        per_row *= dimension
        validity_bytes += (per_row + 7) // 8 if bitmap is not None else 0
    bits = per_row * items.bits + validity_bytes * 8
    if levels.max_rep == 0 and levels.max_def == 0 and validity_bytes == 0 and items.bits % 8 == 0:
        return plain_full_zip(value_bytes(items), encoding, levels, bits)
    page = kernels.encode_full_zip_fixed(items.buffer, items.bits, items.offset, levels.slots, layers, levels)
    return full_zip(page, encoding, levels, bits_per_value=bits)
