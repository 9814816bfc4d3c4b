"""Cutting rows into batches that end where pages of wide values end."""

import pytest
from lance_engine.scan.splits import batch_ranges


@pytest.mark.parametrize(
    ("begin", "end", "rows", "borders", "expected"),
    [
        (0, 0, 10, [], []),
        (0, 25, 10, [], [(0, 10), (10, 20), (20, 25)]),
        (0, 25, 10, [0, 7, 25], [(0, 7), (7, 17), (17, 25)]),
        (5, 12, 100, [0, 5, 10, 20], [(5, 10), (10, 12)]),
        (30, 40, 100, [0, 20], [(30, 40)]),
    ],
)
def test_batches_end_at_borders(
    begin: int, end: int, rows: int, borders: list[int], expected: list[tuple[int, int]]
) -> None:
    assert list(batch_ranges(begin, end, rows, borders)) == expected
