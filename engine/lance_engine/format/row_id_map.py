"""Sets of 64-bit row ids in the form that scalar indices store (indices, "RowAddrTreeMap").

Little-endian: a u32 count, then per entry u32 upper half of the ids, u32 size in bytes, and a portable
Roaring bitmap of the lower halves; size 0 stands for all rows with that upper half.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_engine.errors import CorruptFileError

_COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<II")
_HALF = 32

U64Array = npt.NDArray[np.uint64]


def parse_row_id_map(data: bytes) -> dict[int, BitMap | None]:
    """Bitmaps of the lower halves by upper half, None for all rows; CorruptFileError if it is invalid."""
    if len(data) < _COUNT.size:
        raise CorruptFileError(f"A set of row ids has {len(data)} bytes")
    (count,) = _COUNT.unpack_from(data)
    position = _COUNT.size
    bitmaps: dict[int, BitMap | None] = {}
    for _ in range(count):
        if len(data) - position < _ENTRY.size:
            raise CorruptFileError("A set of row ids ends in the middle of an entry")
        high, size = _ENTRY.unpack_from(data, position)
        position += _ENTRY.size
        if size > len(data) - position or high in bitmaps:
            raise CorruptFileError("An entry of a set of row ids is longer than the set, or is duplicated")
        try:
            bitmaps[high] = BitMap.deserialize(data[position : position + size]) if size else None
        except (ValueError, IndexError) as error:
            raise CorruptFileError("A set of row ids contains an invalid Roaring bitmap") from error
        position += size
    return bitmaps


def serialize_row_id_map(rows: Mapping[int, BitMap]) -> bytes:
    """The bytes of a set; empty bitmaps are left out."""
    parts = []
    for high in sorted(rows):
        if rows[high]:
            data = rows[high].serialize()
            parts += [_ENTRY.pack(high, len(data)), data]
    return b"".join([_COUNT.pack(len(parts) // 2), *parts])


def row_id_map(ids: U64Array) -> dict[int, BitMap]:
    """The set of some ids."""
    ordered = distinct(ids)
    highs = ordered >> np.uint64(_HALF)
    if not len(ordered):
        return {}
    starts = np.flatnonzero(np.append(True, highs[1:] != highs[:-1]))
    pieces = np.split(ordered.astype(np.uint32), starts[1:])
    return {
        int(highs[start]): BitMap(array("I", piece.tobytes()))
        for start, piece in zip(starts, pieces, strict=True)
    }


def distinct(ids: U64Array) -> U64Array:
    """The distinct ids in ascending order; sorting them is faster than `numpy.unique`."""
    ordered = np.sort(ids)
    repeated = ordered[1:] == ordered[:-1]
    return ordered[np.append(True, ~repeated)] if repeated.any() else ordered


def ids_of(high: int, lows: BitMap) -> U64Array:
    """The ids of one entry, ascending."""
    values = np.frombuffer(lows.to_array(), dtype=np.uint32)
    return values.astype(np.uint64) | np.uint64(high << _HALF)
