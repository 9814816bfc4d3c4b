"""Pages of blob columns: the values are stored outside of pages, which contain their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.blob_payloads import blob_payloads
from lance_engine.encodings.page import BlobPage, EncodedPage
from lance_engine.encodings.v2_1 import mini_block, packed_struct, variable_packed_struct
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.layers import layers_of
from lance_engine.format.pb import encodings21_pb2 as pb

_DESCRIPTOR_BITS = (64, 64)
_DEFINITION_SHIFT = 16


def page(context: PageContext) -> BlobPage | None:
    """Of fields that are marked as blobs, of either kind."""
    if context.leaf.field.is_blob_v2:
        return _second_kind(context, context.leaf.array)
    return _first_kind(context, context.leaf.array) if context.leaf.field.is_blob else None


def _first_kind(context: PageContext, array: pa.Array) -> BlobPage:
    """Values of any size, null or empty ones included (format 2.1, blob layout)."""
    levels, count = context.levels, len(array)
    definitions = np.asarray(levels.def_).view(np.uint16)
    descriptors = np.zeros((count, 2), np.uint64)
    if len(definitions):
        # Nulls and empty lists have size 0 and their definition level as position.
        descriptors[:, 0] = definitions.astype(np.uint64) << _DEFINITION_SHIFT
    stored, payloads = blob_payloads(array)
    descriptors[stored, 1] = [len(payload) for payload in payloads]

    def finish(positions: Sequence[int]) -> EncodedPage:
        descriptors[stored, 0] = positions
        builder = kernels.LevelBuilder(count)
        builder.add_item(None, 0, count)
        values = kernels.FlatValues(descriptors, sum(_DESCRIPTOR_BITS), 0, count)
        inner = mini_block.layout(values, packed_struct.describe(_DESCRIPTOR_BITS), builder.finish())
        layout = pb.BlobLayout(inner_layout=inner.layout, layers=layers_of(levels))
        return EncodedPage(levels.rows, pb.PageLayout(blob_layout=layout), inner.buffers)

    return BlobPage(levels.rows, payloads, finish)


def _second_kind(context: PageContext, array: pa.Array) -> BlobPage:
    """Values of any size in the data file itself (format 2.2, blob v2, inline)."""
    count = len(array)
    stored, payloads = blob_payloads(array)
    sizes = np.zeros(count, np.uint64)
    sizes[stored] = [len(payload) for payload in payloads]

    def finish(positions: Sequence[int]) -> EncodedPage:
        places = np.zeros(count, np.uint64)
        places[stored] = positions
        nothing = pa.array([""]).take(pa.array(np.zeros(count, np.int8)))
        numbers = [np.zeros(count, np.uint8), places, sizes, np.zeros(count, np.uint32)]
        return variable_packed_struct.rows_page(
            context, [*((None, pa.array(column)) for column in numbers), (None, nothing)]
        )

    return BlobPage(context.levels.rows, payloads, finish)
