"""Sets of numbers, against Python's."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from lance_engine.distinct import distinct, union

NUMBERS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5))


@given(NUMBERS, NUMBERS)
def test_sets(first: list[int], second: list[int]) -> None:
    left, right = np.array(first, dtype=np.uint64), np.array(second, dtype=np.uint64)
    assert distinct(left).tolist() == sorted(set(first))
    assert union(left, right).tolist() == sorted({*first, *second})
    assert distinct(left).dtype == np.uint64
    assert left.tolist() == first  # as it was
