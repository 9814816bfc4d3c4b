"""Byte stream split: first byte 0 of all values of the chunk, then byte 1 of all, and so on."""

from __future__ import annotations

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.sections import section
from reference.values import Fixed


def decode(data: bytes, bits: int, count: int) -> Fixed:
    """The `count` values of a chunk of 32-bit or 64-bit values."""
    if bits not in (32, 64):
        raise CorruptFileError(f"byte stream split of {bits}-bit values")
    streams = np.frombuffer(section(data, 0, count * bits // 8, "byte streams"), np.uint8)
    return Fixed(bits, np.ascontiguousarray(streams.reshape(bits // 8, count).T))
