"""Merging and splitting the ranges to read from a file."""

from __future__ import annotations

import random

from lance_engine.fetch import Span, joined
from lance_engine.fetch.ranges import MAX_REQUEST


def test_neighbours_are_joined() -> None:
    spans = [Span(0, 100, 0, 10), Span(150, 100, 0, 10), Span(5000, 10, 0, 10)]
    assert joined(spans, 64, 1000) == [Span(0, 250, 0, 10, 50), Span(5000, 10, 0, 10)]


def test_long_spans_are_split() -> None:
    length = 5 * MAX_REQUEST // 2
    parts = joined([Span(7, length, 0, 10)], 0, 300)
    assert len(parts) == 3
    assert all(part.length <= MAX_REQUEST for part in parts)
    assert [part.end for part in parts[:-1]] == [part.offset for part in parts[1:]]
    assert (parts[0].offset, parts[-1].end) == (7, 7 + length)


def test_large_spans_of_distant_rows_stay_apart() -> None:
    spans = [Span(0, 2 << 20, 0, 10), Span(2 << 20, 2 << 20, 500, 600)]
    assert joined(spans, 1 << 20, 8 << 20) == spans


def test_the_order_is_that_of_the_rows() -> None:
    spans = [Span(0, 10, 500, 600), Span(10_000, 10, 0, 100)]
    assert [span.first_row for span in joined(spans, 0, 100)] == [0, 500]


def test_everything_wanted_is_covered_and_holes_are_bounded() -> None:
    rng = random.Random(3)
    for _ in range(200):
        gap, most = rng.randrange(50), rng.randrange(20, 400)
        spans = [
            Span(rng.randrange(5000), rng.randrange(300), row := rng.randrange(100), row + 1)
            for _ in range(rng.randrange(1, 40))
        ]
        found = joined(spans, gap, most)
        covered = {byte for span in found for byte in range(span.offset, span.end)}
        wanted = {byte for span in spans for byte in range(span.offset, span.end)}
        assert wanted <= covered
        assert len(covered) - len(wanted) <= gap * len(spans)
