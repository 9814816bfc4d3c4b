"""How much of random tests and matrices runs: little in `make test`, everything in `make test-all`."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case")

FACTOR = int(os.environ.get("LANCE_SQL_EXAMPLES", "1"))

#: How many cases of a test run in a quick run if it does not say so, by folder.
MOST = {"differential": 8, "faults": 6, "interop": 6, "property": 6, "sql": 6, "unit": 16}


def examples(quick: int) -> int:
    """The number of examples, seeds or rounds of a test that draws `quick` of them in a quick run."""
    return quick * FACTOR


def spread(cases: Sequence[Case], quick: int) -> list[Case]:
    """In a quick run about `quick` of them, evenly spread."""
    return list(cases[:: max(1, len(cases) // examples(quick))])


def mark_most_as_slow(items: Sequence[pytest.Item]) -> None:
    """Of the cases of a test, some run in a quick run: as many as ``sampled(count)`` or its folder says."""
    if os.environ.get("LANCE_SQL_CASES") == "all":  # a run with other versions or settings
        return
    tests: dict[tuple[str, str], list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and not is_slow(item):
            assert item.parent is not None
            tests.setdefault((item.parent.nodeid, item.originalname), []).append(item)
    for (file, _), cases in tests.items():
        marker = cases[0].get_closest_marker("sampled")
        count = marker.args[0] if marker else MOST.get(file.split("/")[1], len(cases))
        left = sample([case.callspec.indices for case in cases], count)
        for number, case in enumerate(cases):
            if number not in left:
                case.add_marker(pytest.mark.slow)


def is_slow(item: pytest.Item) -> bool:
    return item.get_closest_marker("slow") is not None


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
