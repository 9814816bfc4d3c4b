"""The first bytes of an LZ4 block, expanded alone: those of the whole block, and nothing of other memory."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine import kernels

LZ4 = pa.Codec("lz4_raw")


def block(values: bytes) -> bytes:
    return struct.pack("<I", len(values)) + LZ4.compress(values).to_pybytes()


def expanded(data: bytes, wanted: int) -> bytes | None:
    try:
        return kernels.expand_lz4(data, wanted)
    except kernels.CorruptDataError:
        return None


def length_bytes(rest: int) -> bytes:
    return b"\xff" * (rest // 255) + bytes([rest % 255])


def reference(data: bytes, wanted: int) -> bytes | None:
    """The first bytes of a block as the format describes it; None if it is damaged before them."""
    out, at = bytearray(), 4
    wanted = min(wanted, struct.unpack_from("<I", data)[0])

    def length(start: int) -> int:
        nonlocal at
        found = start
        while start == 15:
            found += data[at]
            at += 1
            if data[at - 1] != 255:
                break
        return found

    try:
        while len(out) < wanted:
            token = data[at]
            at += 1
            literals = length(token >> 4)
            out += data[at : at + literals]
            at += literals
            if at > len(data):
                return bytes(out[:wanted]) if len(out) >= wanted else None
            if len(out) >= wanted:
                break
            distance = struct.unpack_from("<H", data, at)[0]
            at += 2
            count = length(token & 15) + 4
            if not 0 < distance <= len(out):
                return None
            for _ in range(count):
                out.append(out[-distance])
    except (IndexError, struct.error):
        return None
    return bytes(out[:wanted])


@settings(max_examples=examples(37), deadline=None)
@given(
    st.lists(st.integers(0, 3_000), min_size=1, max_size=300),
    st.sampled_from([1, 4, 8, 16]),
    st.integers(0, 5_000),
)
def test_any_part(numbers: list[int], width: int, wanted: int) -> None:
    values = b"".join((n % (1 << 8 * width)).to_bytes(width, "little") for n in numbers)
    found = expanded(block(values), wanted)
    assert found is not None
    assert found[:wanted] == values[:wanted]


@settings(max_examples=examples(75), deadline=None)
@given(
    st.lists(st.integers(0, 3_000), min_size=20, max_size=200),
    st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 30),
    st.integers(1, 800),
)
def test_parts_of_damaged_blocks(
    numbers: list[int], changes: list[tuple[int, int]], cut: int, wanted: int
) -> None:
    data = bytearray(block(b"".join(n.to_bytes(4, "little") for n in numbers)))
    for place, value in changes:
        data[4 + place % (len(data) - 4)] = value
    del data[max(5, len(data) - cut) :]
    found, expected = expanded(bytes(data), wanted), reference(bytes(data), wanted)
    assert found is None or expected is None or found[: len(expected)] == expected


@pytest.mark.parametrize(("size", "wanted"), [(64, 40), (200, 100), (4_000, 3_000), (100_000, 70_000)])
def test_nothing_of_other_memory(size: int, wanted: int) -> None:
    """A match at distance 0 copies bytes that were not written yet."""
    literals = b"ab" * 8
    match = length_bytes(size - len(literals) - 12 - 4 - 15)
    sequence = b"\xff" + length_bytes(len(literals) - 15) + literals + b"\0\0" + match
    data = struct.pack("<I", size) + sequence + b"\xc0" + b"Z" * 12
    found = []
    for byte in (b"S", b"T"):  # memory that is used again holds one of them
        kernels.expand_lz4(block(byte * size))
        found.append(expanded(data, wanted))
    assert found[0] == found[1]
    assert found[0] is None or set(found[0]) <= {0, *data}
