"""Maps stable row ids to row addresses.

Most rows are still where they were appended: runs of consecutive ids at consecutive addresses, for which the
index needs 24 bytes each, and a lookup is one binary search over their starts. Compaction creates such runs
as well. Rows that were moved one by one are stored as sorted arrays of the live ones, 16 bytes each. The id
of a moved row is also in its original run, whose row is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lance_engine.errors import CorruptFileError
from lance_engine.format.row_ids import IdRange, Segment

U64Array = npt.NDArray[np.uint64]
# Row addresses in, True for each that is not deleted.
LiveMask = Callable[[U64Array], npt.NDArray[np.bool_]]
# What the index takes for a run, and for a single row.
_RUN_BYTES, _ROW_BYTES = 24, 16


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment and the address of its first row; the others follow without gaps."""

    segment: Segment
    address: int


class RowIdIndex:
    """Maps stable row ids to row addresses (``fragment id << 32 | offset``)."""

    def __init__(self, segments: Iterable[PlacedSegment], is_live: LiveMask) -> None:
        self._is_live = is_live
        runs, self._ids, self._id_addresses = _separate(segments, is_live)
        self._starts, self._ends, self._addresses = runs.starts, runs.ends, runs.addresses
        _, twice = self._find_in_runs(self._ids)
        if twice.any():
            raise _shared(self._ids[twice][0])

    def find(self, ids: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        """The address of each id, and whether it was found; addresses of ids not found mean nothing."""
        addresses, exists = self._find_in_runs(ids)
        if len(self._ids):
            position = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            here = ~exists & (self._ids[position] == ids)
            addresses = np.where(here, self._id_addresses[position], addresses)
            exists |= here
        return addresses, exists

    def _find_in_runs(self, ids: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        if not len(self._starts):
            return np.zeros(len(ids), dtype=np.uint64), np.zeros(len(ids), dtype=np.bool_)
        position = np.searchsorted(self._starts, ids, side="right")
        candidate = np.maximum(position, 1) - 1
        exists = (position > 0) & (ids < self._ends[candidate])
        addresses = self._addresses[candidate] + (ids - self._starts[candidate])
        exists[exists] = self._is_live(addresses[exists])
        return addresses, exists

    def find_range(self, low: int, high: int) -> npt.NDArray[np.int64]:
        """Ranges of row addresses, shape (n, 2), that hold the rows with ids in [low, high).

        In no order; some of the rows may be deleted.
        """
        first, last = np.uint64(low), np.uint64(high)
        begin, end = np.maximum(self._starts, first), np.minimum(self._ends, last)
        some = begin < end
        from_ = self._addresses[some] + (begin[some] - self._starts[some])
        ranges = np.stack([from_, from_ + (end[some] - begin[some])], axis=1)
        single = self._id_addresses[slice(*np.searchsorted(self._ids, [first, last]))]
        return np.concatenate([ranges, np.stack([single, single + np.uint64(1)], axis=1)]).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Consecutive ids at consecutive addresses: `ends` is exclusive; arrays of the same length."""

    starts: U64Array
    ends: U64Array
    addresses: U64Array

    def __getitem__(self, chosen: npt.NDArray[Any]) -> _Runs:
        return _Runs(self.starts[chosen], self.ends[chosen], self.addresses[chosen])

    def spelled_out(self) -> tuple[U64Array, U64Array]:
        """Each id and its address."""
        lengths = self.ends - self.starts
        before = np.cumsum(lengths) - lengths
        position = np.arange(int(lengths.sum()), dtype=np.uint64)
        count = lengths.astype(np.int64)
        return (
            position + np.repeat(self.starts - before, count),
            position + np.repeat(self.addresses - before, count),
        )


def _separate(segments: Iterable[PlacedSegment], is_live: LiveMask) -> tuple[_Runs, U64Array, U64Array]:
    """Runs of which no two share an id, ascending, and the ids and addresses of all other live rows."""
    ranges: list[tuple[int, int, int]] = []
    runs: list[_Runs] = []
    spelled_out = _LiveRows(is_live)
    for placed in segments:
        length = len(placed.segment)
        if isinstance(placed.segment, IdRange):
            if length:
                ranges.append((placed.segment.start, placed.segment.end, placed.address))
            continue
        ids = placed.segment.ids
        breaks = np.flatnonzero(ids[1:] - ids[:-1] != 1) + 1
        first = np.concatenate([np.zeros(min(length, 1), dtype=np.int64), breaks])
        addresses = np.uint64(placed.address) + first.astype(np.uint64)
        if len(first) * _RUN_BYTES < length * _ROW_BYTES:
            lengths = np.diff(first, append=length).astype(np.uint64)
            runs.append(_Runs(ids[first], ids[first] + lengths, addresses))
        else:
            spelled_out.add(ids, np.uint64(placed.address) + np.arange(length, dtype=np.uint64))
    columns = np.array(ranges, dtype=np.uint64).reshape(-1, 3).T
    runs.append(_Runs(*columns))
    joined = _Runs(*(np.concatenate([getattr(part, name) for part in runs]) for name in _Runs.__slots__))
    joined = joined[np.argsort(joined.starts, kind="stable")]
    kept = _without_overlaps(joined)
    if not kept.all():
        spelled_out.add(*joined[~kept].spelled_out())
        joined = joined[kept]
    return joined, *spelled_out.sorted()


def _without_overlaps(runs: _Runs) -> npt.NDArray[np.bool_]:
    """Which of some runs, ascending by their starts, to keep so that no two share an id; rather long ones."""
    kept = np.ones(len(runs.starts), dtype=np.bool_)
    if (runs.starts[1:] >= np.maximum.accumulate(runs.ends)[:-1]).all():
        return kept
    last, last_start, last_end = -1, 0, 0
    for number, (start, end) in enumerate(zip(runs.starts.tolist(), runs.ends.tolist(), strict=True)):
        if start < last_end and end - start <= last_end - last_start:
            kept[number] = False
            continue
        if start < last_end:
            kept[last] = False
        last, last_start, last_end = number, start, end
    return kept


class _LiveRows:
    """Rows that are held one by one, as far as they are not deleted."""

    def __init__(self, is_live: LiveMask) -> None:
        self._is_live = is_live
        self._parts: list[tuple[U64Array, U64Array]] = []

    def add(self, ids: U64Array, addresses: U64Array) -> None:
        live = self._is_live(addresses)
        self._parts.append((ids[live], addresses[live]))

    def sorted(self) -> tuple[U64Array, U64Array]:
        """All of them by their ids; CorruptFileError if two have the same one."""
        empty = np.empty(0, dtype=np.uint64)
        ids = np.concatenate([empty, *(part[0] for part in self._parts)])
        addresses = np.concatenate([empty, *(part[1] for part in self._parts)])
        self._parts.clear()
        order = np.argsort(ids, kind="stable")
        ids, addresses = ids[order], addresses[order]
        twice = np.flatnonzero(ids[1:] == ids[:-1])
        if len(twice):
            raise _shared(ids[twice[0]])
        return ids, addresses


def _shared(row_id: np.uint64) -> CorruptFileError:
    return CorruptFileError(f"Two live rows have the row id {int(row_id)}")
