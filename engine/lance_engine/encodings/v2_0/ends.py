"""The end offsets of strings and lists (format 2.0), relative to their page; they also mark nulls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.nullable import no_nulls
from lance_engine.format.pb import encodings_pb2 as pb

_BITS = 64


def stored_ends(builder: PageBuilder, lengths: np.ndarray, valid: np.ndarray, total: int) -> pb.ArrayEncoding:
    """The end offsets of values with these lengths, `total` in all; `total` + 1 is added for nulls."""
    ends = np.cumsum(lengths, dtype=np.uint64)
    ends[~valid] += np.uint64(total + 1)
    return no_nulls(builder.flat(ends, _BITS))


def offsets_of(array: pa.Array) -> np.ndarray:
    """The offsets of a string, binary or list array: one more than values."""
    types = pa.types
    large = (types.is_large_string, types.is_large_binary, types.is_large_list)
    dtype = np.int64 if any(check(array.type) for check in large) else np.int32
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(1, dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array) + 1]
