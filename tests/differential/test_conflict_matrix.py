"""The table of docs/operations.md about concurrent changes is what simulated writers measure."""

from __future__ import annotations

import random

import pytest
from conflict_matrix import PAGE, SHOWN, outcome, page, row

TEXT = PAGE.read_text()
#: Each quick run measures a row again; over days, all of them.
QUICK = ["append", "delete", "tag"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", QUICK)
def test_rows_are_up_to_date(change: str) -> None:
    assert row(change) in TEXT.splitlines()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_table_is_up_to_date() -> None:
    assert page(TEXT) == TEXT


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_stable_row_ids_change_nothing_but_compaction() -> None:
    """With stable row ids, an index does not refer to the places of rows that a compaction moves."""
    pairs = random.Random(1).sample([(one, other) for one in SHOWN for other in SHOWN], 100)
    different = {pair for pair in pairs if outcome(*pair) != outcome(*pair, stable=True)}
    assert {name for pair in different for name in pair} <= {"compact", "create index", "optimize index"}
