"""Splitting a dataset into ranges of rows that can be scanned separately."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lance_engine.errors import InvalidArgumentError
from lance_engine.records import record

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment

# Boundaries are multiples of this, so that few mini-block chunks are decoded twice.
_ALIGNMENT = 8192


@record
class ScanSplit:
    """A contiguous range [start, stop) of physical rows of one fragment."""

    fragment_id: int
    start: int
    stop: int


def batch_ranges(begin: int, end: int, rows: int, borders: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut [begin, end) into ranges of at most `rows` that cross none of the ascending `borders`."""
    while begin < end:
        border = bisect_right(borders, begin)
        stop = min(end, begin + rows, borders[border] if border < len(borders) else end)
        yield begin, stop
        begin = stop


def split_rows(fragments: Sequence[Fragment], count: int) -> list[ScanSplit]:
    """About `count` ranges of similar size, in row order; none spans two fragments, none is empty."""
    if count < 1:
        raise InvalidArgumentError("The number of splits must be at least 1")
    total = sum(fragment.physical_rows for fragment in fragments)
    target = max(1, -(-total // count))
    splits = []
    for fragment in fragments:
        rows = fragment.physical_rows
        pieces = max(1, round(rows / target))
        step = max(_ALIGNMENT, -(-rows // pieces // _ALIGNMENT) * _ALIGNMENT)
        splits += [ScanSplit(fragment.id, start, min(start + step, rows)) for start in range(0, rows, step)]
    return splits
