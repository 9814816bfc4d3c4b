"""Merging byte ranges, so that a few larger requests replace many small ones."""

from __future__ import annotations

from collections.abc import Iterable

# Two ranges this close are cheaper to read together than with two requests.
MAX_GAP = 64 << 10
# Neighbours are not merged past this, so that requests can run side by side; overlapping ranges always are.
MAX_REQUEST = 16 << 20


def coalesce(
    ranges: Iterable[tuple[int, int]], max_gap: int = MAX_GAP, max_request: int = MAX_REQUEST
) -> list[tuple[int, int]]:
    """Sorted (offset, length) ranges that cover all of `ranges`; empty ones are dropped."""
    merged: list[tuple[int, int]] = []
    for offset, length in sorted(set(ranges)):
        if length == 0:
            continue
        if merged:
            start, size = merged[-1]
            end = max(start + size, offset + length)
            overlaps = offset < start + size
            if overlaps or (offset - (start + size) <= max_gap and end - start <= max_request):
                merged[-1] = (start, end - start)
                continue
        merged.append((offset, length))
    return merged
