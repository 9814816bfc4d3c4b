"""Turns the ranges that are needed of a file into requests: neighbours are joined, long ranges split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

#: Longer ranges are split into requests of this length.
MAX_REQUEST: Final = 8 << 20
# Up to this length neighbours are joined regardless of their rows.
_SHORT_REQUEST: Final = 1 << 20


class Span(NamedTuple):
    """Bytes of a file that rows [first_row, last_row) of its fragment need."""

    offset: int
    length: int
    first_row: int
    last_row: int
    holes: int = 0
    """Bytes among them that are not needed."""

    @property
    def end(self) -> int:
        return self.offset + self.length


def joined(spans: Iterable[Span], max_gap: int, max_joined: int) -> list[Span]:
    """Spans that cover all of `spans`, in the order of the rows that need them first; none is empty.

    Neighbours at most `max_gap` apart are joined up to `max_joined` bytes if they are for the same rows, or
    for rows that follow each other: bytes that are needed much later would take up memory until then.
    Long requests are split.
    """
    merged: list[Span] = []
    for span in sorted(spans):
        if not span.length:
            continue
        if merged and _joins(merged[-1], span, max_gap, max_joined):
            last = merged[-1]
            merged[-1] = Span(
                last.offset,
                max(last.end, span.end) - last.offset,
                min(last.first_row, span.first_row),
                max(last.last_row, span.last_row),
                last.holes + span.holes + max(0, span.offset - last.end),
            )
        else:
            merged.append(span)
    parts = [part for span in merged for part in _split(span, max(max_joined, MAX_REQUEST))]
    return sorted(parts, key=lambda part: (part.first_row, part.offset))


def _joins(last: Span, span: Span, max_gap: int, max_joined: int) -> bool:
    if span.end <= last.end:
        return True
    length = span.end - last.offset
    if span.offset - last.end > max_gap or length > max_joined:
        return False
    return length <= _SHORT_REQUEST or (span.first_row <= last.last_row and last.first_row <= span.last_row)


def _split(span: Span, most: int) -> Iterator[Span]:
    """Parts of about the same length; it is unknown which rows need which part."""
    parts = -(-span.length // most)
    edges = [span.length * part // parts for part in range(parts + 1)]
    for begin, end in pairwise(edges):
        yield Span(span.offset + begin, end - begin, span.first_row, span.last_row, span.holes // parts)
