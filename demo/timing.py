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
