"""Splitting a dataset into ranges of rows that can be scanned separately."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_engine.errors import InvalidArgumentError

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment
    from lance_engine.table.snapshot import Snapshot

# Boundaries are multiples of this, so that few mini-block chunks are decoded twice.
_ALIGNMENT = 8192


@dataclass(frozen=True, slots=True)
class ScanSplit:
    """A contiguous range [start, stop) of physical rows of one fragment."""

    fragment_id: int
    start: int
    stop: int


def splits_from(snapshot: Snapshot, offset: int, limit: int | None) -> tuple[list[ScanSplit], int]:
    """Splits with the `limit` live rows from `offset` on, and how many of their first rows come before.

    What comes before is known from the manifest, so it is not read; but which rows of a fragment are deleted
    is not known.
    """
    splits: list[ScanSplit] = []
    skipped, left = offset, limit
    for fragment in snapshot.fragments:
        rows = snapshot.live_rows(fragment)
        if not splits and skipped and skipped >= rows:
            skipped -= rows
            continue
        if left is not None and left <= 0:
            break
        here = rows if splits else rows - skipped
        start = 0
        if not splits and rows == fragment.physical_rows:
            start = skipped // _ALIGNMENT * _ALIGNMENT  # whole small fragments are read together
            skipped -= start
        stop = fragment.physical_rows
        if left is not None:
            if rows == stop:
                stop = min(stop, start + (0 if splits else skipped) + left)
            left -= here
        splits.append(ScanSplit(fragment.id, start, stop))
    return splits, skipped


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
