"""From stable row ids to row addresses.

Most tables were only ever appended to: their ids are a few ranges, and a lookup is one binary search over
the range starts. Ranges that overlap others (an updated row occurs twice, dead and alive), and all other
segments, are spelled out as sorted arrays of the live rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_engine.errors import CorruptFileError
from lance_engine.format.row_ids import IdRange, Segment

U64Array = npt.NDArray[np.uint64]
# Row addresses in, True for each that is not deleted.
LiveMask = Callable[[U64Array], npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class PlacedSegment:
    """A segment and the address of its first row; the others follow without gaps."""

    segment: Segment
    address: int


class RowIdIndex:
    """Maps stable row ids to row addresses (``fragment id << 32 | offset``)."""

    def __init__(self, segments: Iterable[PlacedSegment], is_live: LiveMask) -> None:
        ranges, spelled_out = _separate(segments)
        self._is_live = is_live
        self._starts = np.array([placed.segment.start for placed in ranges], dtype=np.uint64)
        self._ends = np.array([placed.segment.end for placed in ranges], dtype=np.uint64)
        self._addresses = np.array([placed.address for placed in ranges], dtype=np.uint64)
        self._ids, self._id_addresses = _spell_out(spelled_out, is_live)

    def find(self, ids: U64Array) -> tuple[U64Array, npt.NDArray[np.bool_]]:
        """The address of each id, and whether it was found; addresses of ids not found mean nothing."""
        addresses = np.zeros(len(ids), dtype=np.uint64)
        found = np.zeros(len(ids), dtype=np.bool_)
        if len(self._starts):
            position = np.searchsorted(self._starts, ids, side="right")
            candidate = np.maximum(position, 1) - 1
            found = (position > 0) & (ids < self._ends[candidate])
            addresses = np.where(
                found, self._addresses[candidate] + (ids - self._starts[candidate]), addresses
            )
            found[found] = self._is_live(addresses[found])
        if len(self._ids):
            position = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            here = ~found & (self._ids[position] == ids)
            addresses = np.where(here, self._id_addresses[position], addresses)
            found |= here
        return addresses, found

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
class _PlacedRange:
    segment: IdRange
    address: int


def _separate(segments: Iterable[PlacedSegment]) -> tuple[list[_PlacedRange], list[PlacedSegment]]:
    """Ranges that share no id with any other segment, ascending, and everything else."""
    bounded: list[tuple[int, int, PlacedSegment]] = []
    for placed in segments:
        if not len(placed.segment):
            continue
        if isinstance(placed.segment, IdRange):
            bounded.append((placed.segment.start, placed.segment.end, placed))
        else:
            bounded.append((int(placed.segment.ids.min()), int(placed.segment.ids.max()) + 1, placed))
    bounded.sort(key=lambda item: item[:2])
    ranges: list[_PlacedRange] = []
    others: list[PlacedSegment] = []
    highest_end = 0
    for index, (start, end, placed) in enumerate(bounded):
        next_start = bounded[index + 1][0] if index + 1 < len(bounded) else end
        alone = highest_end <= start and end <= next_start
        if alone and isinstance(placed.segment, IdRange):
            ranges.append(_PlacedRange(placed.segment, placed.address))
        else:
            others.append(placed)
        highest_end = max(highest_end, end)
    return ranges, others


def _spell_out(segments: list[PlacedSegment], is_live: LiveMask) -> tuple[U64Array, U64Array]:
    if not segments:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
    ids = np.concatenate([placed.segment.values() for placed in segments])
    addresses = np.concatenate(
        [np.uint64(placed.address) + np.arange(len(placed.segment), dtype=np.uint64) for placed in segments]
    )
    live = is_live(addresses)
    ids, addresses = ids[live], addresses[live]
    order = np.argsort(ids, kind="stable")
    ids, addresses = ids[order], addresses[order]
    twice = np.flatnonzero(ids[1:] == ids[:-1])
    if len(twice):
        raise CorruptFileError(f"Two live rows have the row id {int(ids[twice[0]])}")
    return ids, addresses
