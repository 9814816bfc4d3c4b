"""Sets of numbers as ascending arrays without repetitions.

numpy's own functions hash, which takes far longer than sorting where numbers are nearly ascending, as row
addresses are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values, shape (n,), ascending and each once."""
    ascending = np.sort(values, kind="stable")  # which looks for runs that are ascending already
    changes = ascending[1:] != ascending[:-1]
    return ascending if changes.all() else ascending[np.flatnonzero(np.concatenate([[True], changes]))]


def union(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values of either array, ascending and each once."""
    return distinct(np.concatenate([first, second]))
