"""Bit packing in blocks of 1024 transposed values.

A block of T-bit values packed to W bits has L = 1024 / T lanes. Each lane is a string of T * W bits holding T
values ("rows") of W bits; the words of the lanes are interleaved: lane bit p is bit p % T of word (p // T) *
L + lane. Row r of lane l is value ORDER[r // 8] * 16 + (r % 8) * 128 + l of the block.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from lance_engine.errors import CorruptFileError

from reference.sections import section, unsigned

BLOCK = 1024
ORDER = np.array([0, 4, 2, 6, 1, 5, 3, 7])

Integers = npt.NDArray[np.unsignedinteger]


def value_positions(bits: int) -> npt.NDArray[np.intp]:
    """The value index of (row, lane): shape (T, 1024 / T)."""
    rows = np.arange(bits)[:, None]
    lanes = np.arange(BLOCK // bits)[None, :]
    return ORDER[rows // 8] * 16 + (rows % 8) * 128 + lanes


def block_bytes(packed_bits: int) -> int:
    """The size of one packed block."""
    return packed_bits * BLOCK // 8


def unpack_block(data: bytes, bits: int, packed_bits: int) -> Integers:
    """The 1024 values of one block of exactly `block_bytes(packed_bits)` bytes."""
    dtype = np.dtype(f"<u{bits // 8}")
    lanes = BLOCK // bits
    words = np.frombuffer(data, dtype).reshape(packed_bits, lanes)
    # (word, lane, bit of word) -> (lane, bit of lane) -> (lane, row, bit of value)
    lane_bits = (words[:, :, None] >> np.arange(bits, dtype=dtype)) & dtype.type(1)
    value_bits = lane_bits.transpose(1, 0, 2).reshape(lanes, bits, packed_bits)
    values = (value_bits << np.arange(packed_bits, dtype=dtype)).sum(axis=2, dtype=dtype)
    block = np.empty(BLOCK, dtype)
    block[value_positions(bits)] = values.T
    return block


def pack_block(values: Integers, packed_bits: int) -> bytes:
    """The inverse of `unpack_block`; short blocks are padded with zeros."""
    dtype = values.dtype
    bits = dtype.itemsize * 8
    block = np.zeros(BLOCK, dtype)
    block[: len(values)] = values
    lane_values = block[value_positions(bits)].T
    value_bits = (lane_values[:, :, None] >> np.arange(packed_bits, dtype=dtype)) & dtype.type(1)
    lane_bits = value_bits.reshape(BLOCK // bits, packed_bits, bits)
    words = (lane_bits << np.arange(bits, dtype=dtype)).sum(axis=2, dtype=dtype)
    return bytes(words.T.astype(dtype.newbyteorder("<")).tobytes())


def _check_widths(bits: int, packed_bits: int) -> None:
    if bits not in (8, 16, 32, 64):
        raise CorruptFileError(f"bit packing of {bits}-bit values")
    if not 0 <= packed_bits <= bits:
        raise CorruptFileError(f"{bits}-bit values cannot be packed to {packed_bits} bits")


def decode_inline(data: bytes, bits: int, count: int) -> Integers:
    """InlineBitpacking: one T-bit word with the packed width W, then one block for at most 1024 values."""
    _check_widths(bits, 0)
    if count > BLOCK:
        raise CorruptFileError(f"an inline bit-packed chunk holds at most {BLOCK} values, not {count}")
    packed_bits = unsigned(data, 0, bits // 8, "packed width")
    _check_widths(bits, packed_bits)
    block = section(data, bits // 8, block_bytes(packed_bits), "bit-packed block")
    return unpack_block(block, bits, packed_bits)[:count]


def decode_out_of_line(data: bytes, bits: int, packed_bits: int, count: int) -> Integers:
    """OutOfLineBitpacking: packed blocks, the last partial one either padded or as raw T-bit words.

    The size of the buffer decides: raw exactly if it is that of the full blocks and the raw tail.
    """
    _check_widths(bits, packed_bits)
    full, tail = divmod(count, BLOCK)
    size = block_bytes(packed_bits)
    parts = [
        unpack_block(section(data, index * size, size, "bit-packed block"), bits, packed_bits)
        for index in range(full)
    ]
    if tail:
        raw = tail * bits // 8
        if len(data) == full * size + raw:
            parts.append(np.frombuffer(data[full * size :], f"<u{bits // 8}"))
        else:
            block = section(data, full * size, size, "last bit-packed block")
            parts.append(unpack_block(block, bits, packed_bits)[:tail])
    return np.concatenate([np.empty(0, f"<u{bits // 8}"), *parts])
