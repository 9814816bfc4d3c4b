"""Variable: offsets and bytes in one buffer, framed differently in chunks and in blocks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from lance_engine.errors import CorruptFileError

from reference.sections import section, unsigned
from reference.values import Variable


def _slice(data: bytes, offsets: npt.NDArray[np.unsignedinteger]) -> Variable:
    ends = [int(offset) for offset in offsets]
    if any(start > stop for start, stop in pairwise(ends)) or ends[-1] > len(data):
        raise CorruptFileError("variable-width offsets decrease or leave their buffer")
    return Variable([data[start:stop] for start, stop in pairwise(ends)])


def decode_chunk(data: bytes, offset_bits: int, count: int) -> Variable:
    """Mini-block framing: count + 1 offsets measured from the start of the buffer, then the bytes."""
    width = offset_bits // 8
    if count == 0:
        return Variable([])
    table = section(data, 0, (count + 1) * width, "variable-width offsets")
    return _slice(data, np.frombuffer(table, f"<u{width}"))


def decode_block(data: bytes, offset_bits: int, count: int) -> Variable:
    """Block framing (dictionaries): offset width in bits, start of the bytes, count + 1 zero-based offsets,
    bytes.
    """
    width = offset_bits // 8
    if unsigned(data, 0, width, "offset width") != offset_bits:
        raise CorruptFileError(
            f"a variable-width block does not have the {offset_bits}-bit offsets it declares"
        )
    start = unsigned(data, width, width, "start of bytes")
    table = section(data, 2 * width, (count + 1) * width, "variable-width offsets")
    return _slice(section(data, start, len(data) - start, "bytes"), np.frombuffer(table, f"<u{width}"))
