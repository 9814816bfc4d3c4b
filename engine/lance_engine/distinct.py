"""Sets of numbers as ascending arrays without duplicates.

numpy's own functions use hashing, which takes far longer than sorting if numbers are almost ascending, as row
addresses are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values in ascending order, shape (n,)."""
    ascending = np.sort(values, kind="stable")  # which detects runs that are already ascending
    changes = ascending[1:] != ascending[:-1]
    return ascending if changes.all() else ascending[np.flatnonzero(np.concatenate([[True], changes]))]


def union(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The distinct values of both arrays in ascending order."""
    return distinct(np.concatenate([first, second]))
