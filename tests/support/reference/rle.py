"""Run-length encoding: values, and how often each is repeated (1 to 255; longer runs repeat the value)."""

from __future__ import annotations

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.sections import section, unsigned
from reference.values import Fixed


def decode(values: bytes, lengths: bytes, bits: int, count: int) -> Fixed:
    """Expand to `count` values; a last run that reaches further is cut."""
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"run-length encoding of {bits}-bit values")
    if len(values) != len(lengths) * bits // 8:
        raise CorruptFileError(f"{len(values)} bytes of run values for {len(lengths)} run lengths")
    runs = np.frombuffer(lengths, np.uint8)
    if not runs.all():
        raise CorruptFileError("a run has length 0")
    rows = np.frombuffer(values, np.uint8).reshape(len(runs), bits // 8)
    expanded = rows[np.repeat(np.arange(len(runs)), runs)]
    if len(expanded) < count:
        raise CorruptFileError(f"runs cover {len(expanded)} of {count} values")
    return Fixed(bits, expanded[:count])


def decode_block(data: bytes, bits: int, count: int) -> Fixed:
    """Block framing (levels, dictionaries): u64 size of the values, the values, the run lengths."""
    size = unsigned(data, 0, 8, "size of run values")
    values = section(data, 8, size, "run values")
    return decode(values, data[8 + size :], bits, count)
