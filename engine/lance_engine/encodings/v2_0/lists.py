"""Lists: their end offsets in the items, which are a separate column (format 2.0, list)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.ends import offsets_of, stored_ends
from lance_engine.format.pb import encodings_pb2 as pb


def list_page(array: pa.Array) -> tuple[pa.Array, EncodedPage]:
    """The contiguous items of the lists, and the page with the end of each list."""
    offsets, valid = offsets_of(array), np.asarray(array.is_valid())
    lengths = np.diff(offsets)
    items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    if array.null_count and lengths[~valid].any():
        items = items.filter(pa.array(np.repeat(valid, lengths)))
        lengths = np.where(valid, lengths, 0)
    total = len(items)
    builder = PageBuilder()
    ends = stored_ends(builder, lengths, valid, total)
    lists = pb.List(offsets=ends, null_offset_adjustment=total + 1, num_items=total)
    return items, builder.page(len(array), pb.ArrayEncoding(list=lists))
