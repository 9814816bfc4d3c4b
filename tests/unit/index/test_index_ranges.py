"""Row ranges and sets of row ids, against sets of Python."""

from __future__ import annotations

import random

import numpy as np
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.row_id_map import (
    distinct,
    ids_of,
    parse_row_id_map,
    row_id_map,
    serialize_row_id_map,
)
from lance_engine.index.ranges import EMPTY, intersection, ranges_of, union
from pyroaring import BitMap


def rows(ranges: np.ndarray) -> set[int]:
    return {row for begin, end in ranges.tolist() for row in range(begin, end)}


def test_ranges_are_sets() -> None:
    rng = random.Random(5)
    for _ in range(200):
        left, right = (sorted(rng.sample(range(40), rng.randint(0, 30))) for _ in range(2))
        one, other = (ranges_of(np.array(offsets, dtype=np.uint64)) for offsets in (left, right))
        assert rows(one) == set(left)
        assert rows(intersection(one, other)) == set(left) & set(right)
        joined = union([one, other])
        assert rows(joined) == set(left) | set(right)
        # Ascending, disjoint, and no two that touch.
        assert (joined[1:, 0] > joined[:-1, 1]).all()
    assert len(union([])) == len(ranges_of(np.array([], dtype=np.uint64))) == len(EMPTY) == 0


def test_sets_of_row_ids_come_back() -> None:
    ids = np.array([7, 3, 3, 2**32 + 5, 2**40, 2**64 - 1], dtype=np.uint64)
    stored = serialize_row_id_map(row_id_map(ids))
    found = parse_row_id_map(stored)
    assert sorted(found) == [0, 1, 256, 2**32 - 1]
    held = np.concatenate([ids_of(high, lows) for high, lows in found.items() if lows is not None])
    assert held.tolist() == distinct(ids).tolist() == sorted(set(ids.tolist()))
    assert serialize_row_id_map({}) == bytes(4)
    assert row_id_map(np.empty(0, dtype=np.uint64)) == {}


def test_whole_fragments_have_no_bitmap() -> None:
    assert parse_row_id_map(b"\x01\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00") == {7: None}


@pytest.mark.parametrize("cut", [0, 3, 8, 14])
def test_damaged_sets_are_corrupt(cut: int) -> None:
    data = serialize_row_id_map({2: BitMap([1, 9])})
    with pytest.raises(CorruptFileError):
        parse_row_id_map(data[:cut])
    with pytest.raises(CorruptFileError):
        parse_row_id_map(data[:12] + b"\xff" * (len(data) - 12))
