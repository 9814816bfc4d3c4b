"""From stable row ids to addresses."""

from __future__ import annotations

import tracemalloc

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.format.row_ids import IdArray, IdRange
from lance_engine.io import MemoryStore
from lance_engine.table.row_id_index import LiveMask, PlacedSegment, RowIdIndex
from lance_engine.write.dataset import write_dataset

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


def _live(dead: U64Array) -> LiveMask:
    return lambda addresses: ~np.isin(addresses, dead)


def _bytes(segments: list[PlacedSegment], dead: U64Array) -> int:
    """The memory that an index keeps."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        index = RowIdIndex(segments, _live(dead))
        used = tracemalloc.get_traced_memory()[0] - before
        assert index.find(np.zeros(1, dtype=np.uint64))[0].shape == (1,)
        return used
    finally:
        tracemalloc.stop()


ROWS, CHANGED = 1 << 20, 10_000


def test_memory_goes_by_runs_and_by_rows_that_were_moved() -> None:
    random = np.random.default_rng(3)
    chosen = np.sort(random.choice(ROWS, CHANGED, replace=False)).astype(np.uint64)
    none = np.empty(0, dtype=np.uint64)
    table = PlacedSegment(IdRange(0, ROWS), 0)
    small = 4096
    assert _bytes([table], none) < small
    # An update of some rows of a large table: 16 bytes for each, nothing for the others.
    moved = PlacedSegment(IdArray(chosen), 1 << 32)
    assert _bytes([table, moved], chosen) < 16 * CHANGED + small
    # A compaction leaves out deleted rows: 24 bytes for each run between two of them.
    compacted = PlacedSegment(IdArray(np.delete(np.arange(ROWS, dtype=np.uint64), chosen)), 2 << 32)
    assert _bytes([compacted], none) < 24 * (CHANGED + 1) + small
    # Rows in a random order: 16 bytes each, after all.
    mixed = PlacedSegment(IdArray(random.permutation(ROWS).astype(np.uint64)), 3 << 32)
    assert 16 * ROWS <= _bytes([mixed], none) < 16 * ROWS + small


def test_updates_of_neighbouring_rows_stay_runs() -> None:
    # Half of the rows of a fragment were moved, in order, and then some of these again.
    dead = {*range(50), *((1 << 32) + offset for offset in range(10, 20))}
    index = _index(
        [
            PlacedSegment(IdRange(0, 100), 0),
            PlacedSegment(_array(*range(50)), 1 << 32),
            PlacedSegment(_array(*range(10, 20)), 2 << 32),
        ],
        dead,
    )
    assert _find(index, 9, 10, 19, 20, 50, 99, 100) == [
        (1 << 32) + 9, 2 << 32, (2 << 32) + 9, (1 << 32) + 20, 50, 99, None,
    ]  # fmt: skip


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_are_taken_by_ids_that_stay(compacted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    table = pa.table({"id": np.arange(1000), "v": np.zeros(1000)})
    dataset = DatasetVersion(write_dataset(table, store, max_rows_per_file=300, stable_row_ids=True))
    dataset = dataset.update({"v": "1"}, "id % 10 = 3").delete("id % 7 = 0").update({"v": "2"}, "id < 40")
    dataset = DatasetVersion(write_dataset(table.slice(0, 50), store, "append"))
    if compacted:
        dataset = dataset.compact().update({"v": "3"}, "id BETWEEN 500 AND 510")
    built = []
    monkeypatch.setattr(
        "lance_engine.table.row_id_index.RowIdIndex", lambda *given: built.append(1) or RowIdIndex(*given)
    )
    rows = dataset.scan(["_rowid", "id", "v"]).to_table()
    assert not built
    shuffled = np.random.default_rng(2).permutation(rows.num_rows)
    expected = rows.take(shuffled)
    assert dataset.take(expected["_rowid"]).equals(expected.drop_columns(["_rowid"]))
    assert dataset.take([0], missing="skip").num_rows == 0
    assert built == [1]


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
            ids = range(segment.start, segment.end) if isinstance(segment, IdRange) else segment.ids.tolist()
            for offset, row_id in enumerate(ids):
                if row_id in expected or random.random() < 0.2:
                    dead.add(address + offset)
                else:
                    expected[row_id] = address + offset
        index = _index(segments, dead)
        asked = random.integers(0, 90, 50).tolist()
        assert _find(index, *asked) == [expected.get(row_id) for row_id in asked]
