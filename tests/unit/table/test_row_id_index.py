"""From stable row ids to addresses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from lance_engine.errors import CorruptFileError
from lance_engine.format.row_ids import IdArray, IdRange
from lance_engine.table.row_id_index import PlacedSegment, RowIdIndex

U64Array = npt.NDArray[np.uint64]


def _array(*ids: int) -> IdArray:
    return IdArray(np.array(ids, dtype=np.uint64))


def _index(segments: list[PlacedSegment], dead: set[int] = frozenset()) -> RowIdIndex:  # type: ignore[assignment]
    def is_live(addresses: U64Array) -> npt.NDArray[np.bool_]:
        return np.array([int(address) not in dead for address in addresses], dtype=np.bool_)

    return RowIdIndex(segments, is_live)


def _find(index: RowIdIndex, *ids: int) -> list[int | None]:
    addresses, found = index.find(np.array(ids, dtype=np.uint64))
    return [int(address) if hit else None for address, hit in zip(addresses, found, strict=True)]


def test_ranges_are_searched_without_being_spelled_out() -> None:
    huge = PlacedSegment(IdRange(2**40, 2**40 + 2**32), 5 << 32)
    index = _index([huge, PlacedSegment(IdRange(10, 20), 0), PlacedSegment(IdRange(20, 22), 1 << 32)])
    assert _find(index, 10, 19, 20, 2**40 + 7, 9, 22, 0, 2**64 - 1) == [
        0, 9, 1 << 32, (5 << 32) + 7, None, None, None, None,
    ]  # fmt: skip


def test_deleted_rows_are_not_found() -> None:
    index = _index([PlacedSegment(IdRange(0, 5), 0), PlacedSegment(_array(9, 7), 100)], dead={2, 101})
    assert _find(index, 1, 2, 9, 7) == [1, None, 100, None]


def test_an_updated_row_is_found_where_it_lives() -> None:
    # Row 3 was moved to the second fragment; its old place is deleted. The range overlaps, so it is spelled
    # out.
    moved = PlacedSegment(_array(3), 1 << 32)
    index = _index([PlacedSegment(IdRange(0, 5), 0), moved, PlacedSegment(IdRange(5, 9), 2 << 32)], dead={3})
    assert _find(index, 3, 4, 5, 3) == [1 << 32, 4, 2 << 32, 1 << 32]


def test_a_long_range_before_many_short_ones_overlaps_all_of_them() -> None:
    dead = set(range(100))
    index = _index(
        [
            PlacedSegment(IdRange(0, 100), 0),
            PlacedSegment(IdRange(10, 20), 1000),
            PlacedSegment(IdRange(30, 40), 2000),
            PlacedSegment(IdRange(100, 101), 3000),
        ],
        dead,
    )
    assert _find(index, 10, 39, 25, 100) == [1000, 2009, None, 3000]


def test_two_live_rows_with_one_id_are_corrupt() -> None:
    with pytest.raises(CorruptFileError, match="row id 3"):
        _index([PlacedSegment(IdRange(0, 5), 0), PlacedSegment(_array(3), 1 << 32)])
    with pytest.raises(CorruptFileError, match="row id 7"):
        _index([PlacedSegment(_array(7, 7), 0)])


def test_an_empty_index_finds_nothing() -> None:
    assert _find(_index([]), 1, 2) == [None, None]
    assert _find(_index([PlacedSegment(IdRange(3, 3), 0)]), 3) == [None]


def test_random_tables_agree_with_a_dictionary() -> None:
    random = np.random.default_rng(5)
    for _ in range(50):
        expected: dict[int, int] = {}
        dead: set[int] = set()
        segments = []
        for number in range(6):
            address = number << 32
            if random.random() < 0.5:
                start = int(random.integers(0, 60))
                segment: IdRange | IdArray = IdRange(start, start + int(random.integers(0, 20)))
            else:
                segment = _array(*random.permutation(80)[: int(random.integers(0, 20))].tolist())
            segments.append(PlacedSegment(segment, address))
            for offset, row_id in enumerate(segment.values().tolist()):
                if row_id in expected or random.random() < 0.2:
                    dead.add(address + offset)
                else:
                    expected[row_id] = address + offset
        index = _index(segments, dead)
        asked = random.integers(0, 90, 50).tolist()
        assert _find(index, *asked) == [expected.get(row_id) for row_id in asked]
