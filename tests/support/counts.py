"""How much of random tests and matrices runs: little in `make test`, everything in `make test-all`."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

FACTOR = int(os.environ.get("LANCE_SQL_EXAMPLES", "1"))


def examples(quick: int) -> int:
    """The number of examples, seeds or rounds of a test that draws `quick` of them in a quick run."""
    return quick * FACTOR


def spread(cases: Sequence[Case], quick: int) -> list[Case]:
    """In a quick run about `quick` of them, evenly spread."""
    return list(cases[:: max(1, len(cases) // examples(quick))])


def mark_most_as_slow(items: Sequence[pytest.Item]) -> None:
    """Of a test with the marker ``sampled(count)``, all cases but `count` become slow."""
    tests: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled and isinstance(item, pytest.Function) and not item.get_closest_marker("slow"):
            assert item.parent is not None
            tests.setdefault((item.parent.nodeid, item.originalname), []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("sampled")
        assert marker is not None
        left = sample([case.callspec.indices for case in cases], *marker.args)
        for number, case in enumerate(cases):
            if number not in left:
                case.add_marker(pytest.mark.slow)


def sample(cases: Sequence[Mapping[str, int]], count: int) -> set[int]:
    """The numbers of `count` cases, always the same, with as many values of each parameter as possible."""
    order = random.Random(0).sample(range(len(cases)), len(cases))
    seen: set[tuple[str, int]] = set()

    def news(number: int) -> int:
        return len(cases[number].items() - seen)

    chosen: set[int] = set()
    while len(chosen) < min(count, len(cases)):
        best = max((number for number in order if number not in chosen), key=news)
        chosen.add(best)
        seen |= cases[best].items()
    return chosen
