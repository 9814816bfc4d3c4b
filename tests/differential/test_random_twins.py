"""Random calls of the dataset API have the same outcome in pylance."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from random_twins import round_of

FIRST, _, END = os.environ.get("LANCE_SQL_SEEDS", "0-2").partition("-")


@pytest.mark.parametrize("seed", range(int(FIRST), int(END)))
def test_each_call_has_the_same_outcome(tmp_path: Path, seed: int) -> None:
    outcomes, difference = round_of(tmp_path, seed)
    assert difference is None, difference
    assert outcomes["done"] > 0
