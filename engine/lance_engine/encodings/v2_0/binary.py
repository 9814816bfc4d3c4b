"""Binary: the end offsets of the values, which also mark nulls, and their bytes (format 2.0, binary)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.page import Buffer
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.ends import offsets_of, stored_ends
from lance_engine.encodings.values import is_variable
from lance_engine.format.pb import encodings_pb2 as pb


def encode(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding | None:
    """Strings and binary values, their bytes compressed as a whole where the field asks for it."""
    if not is_variable(array.type) or array.null_count == len(array):
        return None
    return binary(builder, array, settings)


def binary(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding:
    offsets = offsets_of(array)
    lengths, valid = np.diff(offsets), np.asarray(array.is_valid())
    content: Buffer = memoryview(array.buffers()[2] or b"")[int(offsets[0]) : int(offsets[-1])]
    if array.null_count and lengths[~valid].any():
        # The bytes of null values are not stored.
        content = memoryview(np.frombuffer(content, np.uint8)[np.repeat(valid, lengths)])
        lengths = np.where(valid, lengths, 0)
    compression = settings.general
    total = len(content)
    if compression:
        kind = kernels.Scheme.ZSTD if compression == "zstd" else kernels.Scheme.LZ4
        content = kernels.compress_block(content, kind, settings.level or 0)
    ends = stored_ends(builder, lengths, valid, total)
    values = builder.flat(content, 8, compression)
    return pb.ArrayEncoding(binary=pb.Binary(indices=ends, bytes=values, null_adjustment=total + 1))
