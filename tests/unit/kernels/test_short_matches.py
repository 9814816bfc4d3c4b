"""LZ4 blocks of numbers, which our own loop expands, are what the library makes of them."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lance_engine import kernels

LZ4 = pa.Codec("lz4_raw")


def block(values: bytes) -> bytes:
    return struct.pack("<I", len(values)) + LZ4.compress(values).to_pybytes()


def same(data: bytes) -> bool:
    """Whether both ways expand a block, to the same bytes."""
    found = []
    for short_matches in (True, False):
        try:
            found.append(kernels.expand_lz4(data, short_matches))
        except kernels.CorruptDataError:
            found.append(None)
    assert found[0] == found[1]
    return found[0] is not None


@pytest.mark.parametrize("width", [1, 3, 4, 8, 12, 16, 24, 32])
@pytest.mark.parametrize("most", [2, 200, 1 << 15, 1 << 40])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 40, 1_000])
def test_numbers_of_any_width(width: int, most: int, count: int) -> None:
    random = np.random.default_rng(width * 7 + count)
    for numbers in (random.integers(0, most, count), np.cumsum(random.integers(0, 3, count))):
        values = b"".join((int(n) % (1 << 8 * width)).to_bytes(width, "little") for n in numbers)
        data = block(values)
        assert same(data)
        assert kernels.expand_lz4(data, True) == values


@settings(max_examples=examples(75), deadline=None)
@given(
    numbers=st.lists(st.integers(0, 3_000), min_size=1, max_size=200),
    width=st.sampled_from([4, 8, 16]),
    changes=st.lists(st.tuples(st.integers(0, 2_000), st.integers(0, 255)), max_size=4),
    cut=st.integers(0, 30),
)
def test_damaged_blocks(numbers: list[int], width: int, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(block(b"".join(n.to_bytes(width, "little") for n in numbers)))
    for place, value in changes:
        data[4 + place % (len(data) - 4)] = value
    del data[max(5, len(data) - cut) :]
    same(bytes(data))


@pytest.mark.parametrize("rest", [b"", b"\0", b"\0\0", b"\x10a", b"\x0f\1\0\0"])
def test_blocks_that_declare_no_bytes(rest: bytes) -> None:
    assert same(struct.pack("<I", 0) + rest) == (rest == b"\0")


@settings(max_examples=examples(75), deadline=None)
@given(st.binary(min_size=1, max_size=120), st.integers(0, 400))
def test_blocks_of_any_bytes(data: bytes, size: int) -> None:
    same(struct.pack("<I", size) + data)
