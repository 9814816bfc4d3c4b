"""Some physical rows of a fragment, as ranges or one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import compute as pc
from lance_engine.arrow_values import to_numpy
from lance_engine.index.ranges import ranges_of

I64Array = npt.NDArray[np.int64]
U32Array = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]

#: Maximum average distance of rows that are decoded as a range and then filtered.
SPARSE_DISTANCE = 16
# A mask with fewer bits set than one in so many is searched word by word.
_SPARSE_BITS = 64
# A larger distance than this between two rows ends a range, and ranges need that many rows on average.
_GAP = 512
_RANGE_ROWS = 32


class Selection:
    """Ascending distinct physical rows. Immutable; derived data is computed on demand."""

    __slots__ = ("_offsets", "_ranges", "begin", "count", "end")

    def __init__(self, ranges: I64Array | None, offsets: U32Array | None = None) -> None:
        self._ranges = ranges
        self._offsets = offsets
        if ranges is not None:
            self.begin, self.end = int(ranges[0, 0]), int(ranges[-1, 1])
            self.count = (
                self.end - self.begin if len(ranges) == 1 else int((ranges[:, 1] - ranges[:, 0]).sum())
            )
        else:
            assert offsets is not None
            self.begin, self.end = int(offsets[0]), int(offsets[-1]) + 1
            self.count = len(offsets)

    @classmethod
    def of_range(cls, begin: int, end: int) -> Selection:
        """Rows [begin, end), at least one."""
        return cls(np.array([[begin, end]], dtype=np.int64))

    @classmethod
    def of_ranges(cls, ranges: I64Array) -> Selection:
        """The rows of ascending disjoint ranges, shape (n, 2), at least one and none empty."""
        return cls(ranges)

    @classmethod
    def of_offsets(cls, offsets: U32Array) -> Selection:
        """Individual rows, at least one, ascending."""
        return cls(None, offsets)

    @property
    def is_range(self) -> bool:
        """Whether the rows are all those from `begin` to `end`."""
        return self.count == self.end - self.begin

    @property
    def ranges(self) -> I64Array:
        """The rows as ranges, shape (n, 2)."""
        if self._ranges is None:
            assert self._offsets is not None
            self._ranges = ranges_of(self._offsets)
        return self._ranges

    @property
    def offsets(self) -> U32Array:
        """The rows one by one."""
        if self._offsets is None:
            assert self._ranges is not None
            self._offsets = offsets_of(self._ranges)
        return self._offsets

    @property
    def prefers_rows(self) -> bool:
        """Whether there are too many short ranges to decode them one by one."""
        if self._ranges is None:
            return not self.is_range
        return self.count < len(self._ranges) * _RANGE_ROWS and len(self._ranges) > 1

    def halves(self) -> tuple[Selection, Selection]:
        """The first and the second half of two or more rows."""
        middle = self.count // 2
        return self.part(0, middle), self.part(middle, self.count)

    def where(self, mask: pa.BooleanArray) -> Selection:
        """The rows at which `mask`, without nulls, is true, at least one."""
        places = _places(mask)
        if self.is_range:
            return Selection.of_offsets((places + self.begin).astype(np.uint32))
        if self._offsets is None:
            return Selection.of_offsets(_rows_at(self.ranges, places))
        return Selection.of_offsets(self._offsets[places])

    def parts(self, rows: int) -> Iterator[tuple[int, int]]:
        """Positions [first, last) among the rows that cut them into parts to be read at once.

        No part has more than `rows` rows; where the rows are dense, none spans more than that either.
        """
        span = self.end - self.begin
        dense = self.count * SPARSE_DISTANCE >= span
        if self.is_range or not dense:
            edges = list(range(0, self.count, rows))
        else:
            starts = np.arange(self.begin, self.end, rows)
            edges = np.unique(np.searchsorted(self.offsets, starts)).tolist()
        return pairwise([*edges, self.count])

    def part(self, first: int, last: int) -> Selection:
        """The rows at positions [first, last) among these."""
        if last - first == self.count:
            return self
        if self.is_range:
            return Selection.of_range(self.begin + first, self.begin + last)
        return Selection.of_offsets(self.offsets[first:last])

    def between(self, begin: int, end: int) -> Selection | None:
        """The rows in [begin, end), numbered from `begin`, or None."""
        if self._ranges is not None:
            cut = np.clip(self._ranges, begin, end) - begin
            cut = cut[cut[:, 0] < cut[:, 1]]
            return Selection.of_ranges(cut) if len(cut) else None
        first, last = np.searchsorted(self.offsets, [begin, end])
        return Selection.of_offsets(self.offsets[first:last] - np.uint32(begin)) if first < last else None

    def covering(self, distance: int = SPARSE_DISTANCE) -> tuple[Selection, Bools | None]:
        """A larger selection that is cheaper to decode, and the positions of the rows in it (None: all).

        Decoding a range costs a fraction per row of what decoding single rows costs, so that rows that are on
        average at most `distance` apart are better decoded with what is between them.
        """
        if self.is_range or self._ranges is not None:
            return self, None
        span = self.end - self.begin
        if self.count * distance >= span:
            cover = Selection.of_range(self.begin, self.end)
        else:
            cuts = np.flatnonzero(np.diff(self.offsets) > _GAP) + 1
            if len(cuts) * _RANGE_ROWS > self.count:
                return self, None
            first, last = np.append(0, cuts), np.append(cuts, self.count) - 1
            ranges = np.stack([self.offsets[first], self.offsets[last] + np.uint32(1)], axis=1)
            cover = Selection.of_ranges(ranges.astype(np.int64))
            if cover.count > self.count * distance:
                return self, None
        if cover.count == self.count:
            return cover, None
        return cover, np.isin(cover.offsets, self.offsets, assume_unique=True) if len(
            cover.ranges
        ) > 1 else _marked(self.offsets, self.begin, span)


def _places(mask: pa.BooleanArray) -> I64Array:
    """Where a mask without nulls is true."""
    buffer = mask.buffers()[1]
    if mask.offset or buffer is None:
        return to_numpy(pc.indices_nonzero(mask)).astype(np.int64)
    if mask.true_count * _SPARSE_BITS > len(mask):
        return np.flatnonzero(_bits(np.frombuffer(buffer, np.uint8, -(-len(mask) // 8)), len(mask)))
    # Only words with a bit set are looked into.
    whole = len(mask) // 64 * 64
    words = np.frombuffer(buffer, dtype="<u8", count=whole // 64)
    numbers = np.flatnonzero(words)
    places = np.flatnonzero(_bits(words[numbers].view(np.uint8)))
    rest = np.frombuffer(buffer, np.uint8, -(-(len(mask) - whole) // 8), whole // 8)
    last = np.flatnonzero(_bits(rest, len(mask) - whole)) + whole
    return np.concatenate([numbers[places >> 6] * 64 + (places & 63), last])


def _bits(packed: npt.NDArray[np.uint8], count: int | None = None) -> Bools:
    return np.unpackbits(packed, count=count, bitorder="little").view(np.bool_)


def _rows_at(ranges: I64Array, places: I64Array) -> U32Array:
    """The rows at some positions among those of ascending ranges, without all the others."""
    lengths = ranges[:, 1] - ranges[:, 0]
    first = np.cumsum(lengths) - lengths
    skipped = ranges[:, 0] - first
    rows: I64Array = places + skipped[np.searchsorted(first, places, "right") - 1]
    return rows.astype(np.uint32)


def _marked(offsets: U32Array, begin: int, length: int) -> Bools:
    mask: Bools = np.zeros(length, dtype=np.bool_)
    mask[offsets - np.uint32(begin)] = True
    return mask


def offsets_of(ranges: I64Array) -> U32Array:
    """The rows of ascending ranges one by one."""
    if len(ranges) == 1:
        return np.arange(ranges[0, 0], ranges[0, 1], dtype=np.uint32)
    lengths = ranges[:, 1] - ranges[:, 0]
    skipped = ranges[:, 0] - (np.cumsum(lengths) - lengths)
    rows: U32Array = np.repeat(skipped.astype(np.uint32), lengths)
    rows += np.arange(len(rows), dtype=np.uint32)
    return rows
