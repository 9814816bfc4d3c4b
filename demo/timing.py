"""How long something takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def timed(action: Callable[[], Result]) -> tuple[Result, float]:
    """The result and the seconds it took."""
    start = time.perf_counter()
    return action(), time.perf_counter() - start


def first_and_warm(action: Callable[[], Result], times: int = 2) -> tuple[Result, float, float]:
    """The result, the seconds of the first run, which imports and opens, and of the fastest of more runs."""
    result, first = timed(action)
    return result, first, min(timed(action)[1] for _ in range(times))
