"""Flat: values of `bits` bits, one after the other. 1-bit values are an Arrow bitmap."""

from __future__ import annotations

import numpy as np
from lance_engine.errors import UnsupportedFeatureError

from reference.sections import bitmap, section
from reference.values import Fixed


def decode(data: bytes, bits: int, count: int) -> Fixed:
    """The first `count` values of `data`; what follows them is padding."""
    if bits == 1:
        return Fixed(1, bitmap(data, count, "bitmap"))
    if bits % 8 or bits == 0:
        raise UnsupportedFeatureError(f"flat values of {bits} bits")
    width = bits // 8
    raw = np.frombuffer(section(data, 0, count * width, "flat values"), np.uint8)
    return Fixed(bits, raw.reshape(count, width))
