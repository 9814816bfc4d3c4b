"""Checked access to pieces of a buffer: nothing read from a file is trusted."""

from __future__ import annotations

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.values import Bools


def section(data: bytes, start: int, length: int, what: str) -> bytes:
    """The bytes [start, start + length) of `data`; `what` names them when they are not there."""
    if start < 0 or length < 0 or start + length > len(data):
        raise CorruptFileError(f"{what} would be bytes {start}..{start + length} of {len(data)}")
    return data[start : start + length]


def unsigned(data: bytes, start: int, width: int, what: str) -> int:
    """One little-endian unsigned integer of `width` bytes."""
    return int.from_bytes(section(data, start, width, what), "little")


def pad(length: int, alignment: int) -> int:
    """`length` rounded up to a multiple of `alignment`."""
    return -(-length // alignment) * alignment


def bitmap(data: bytes, count: int, what: str) -> Bools:
    """`count` bits, least significant first, starting at bit 0."""
    raw = np.frombuffer(section(data, 0, (count + 7) // 8, what), np.uint8)
    return np.unpackbits(raw, bitorder="little")[:count].astype(np.bool_)
