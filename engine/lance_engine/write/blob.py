"""Pages of blob columns: the values lie in the file outside of pages, the pages tell where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import BlobPage, Buffer, EncodedPage
from lance_engine.write.packed import variable_packed_page
from lance_engine.write.page_context import PageContext

_DESCRIPTOR_BITS = (64, 64)
_DEFINITION_SHIFT = 16


def blob_page(context: PageContext, array: pa.Array) -> BlobPage:
    """Values of any size, null or empty ones included (format 2.1, blob layout)."""
    levels, count = context.levels, len(array)
    definitions = np.asarray(levels.def_).view(np.uint16)
    descriptors = np.zeros((count, 2), np.uint64)
    if len(definitions):
        # What is no value has size 0 and its definition level in the position.
        descriptors[:, 0] = definitions.astype(np.uint64) << _DEFINITION_SHIFT
    stored, payloads = blob_payloads(array)
    descriptors[stored, 1] = [len(payload) for payload in payloads]

    def finish(positions: Sequence[int]) -> EncodedPage:
        descriptors[stored, 0] = positions
        builder = kernels.LevelBuilder(count)
        builder.add_item(None, 0, count)
        values = kernels.FlatValues(descriptors, sum(_DESCRIPTOR_BITS), 0, count)
        encoding = v2_1.packed_struct(_DESCRIPTOR_BITS)
        return v2_1.blob_page(v2_1.mini_block_page(values, encoding, builder.finish()), levels)

    return BlobPage(levels.rows, payloads, finish)


def blob_v2_page(context: PageContext, array: pa.Array) -> BlobPage:
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
        return variable_packed_page(
            context, [*((None, pa.array(column)) for column in numbers), (None, nothing)]
        )

    return BlobPage(context.levels.rows, payloads, finish)


def blob_payloads(array: pa.Array) -> tuple[np.ndarray, tuple[Buffer, ...]]:
    """The numbers of the values that are neither null nor empty, and their bytes, which are not copied."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    stored = np.flatnonzero((np.diff(ends) > 0) & np.asarray(array.is_valid()))
    content = memoryview(data or b"")
    return stored, tuple(content[ends[number] : ends[number + 1]] for number in stored)
