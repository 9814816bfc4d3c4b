"""The driver of the generators: seeds that crash or find something are told, and planted faults are found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import generators
import pytest

sys.path.append(str(Path(__file__).parent))
import run
from planted import seconds_until_found
from planted_faults import FAULTS


@pytest.mark.slow
def test_a_turn_tells_its_rounds() -> None:
    told = list(run.turns("filters", 5, 0.0))
    assert [one | {"seconds": 0} for one in told] == [
        {"seed": 5, "count": generators._FILTERS, "findings": [], "seconds": 0}
    ]


def test_a_turn_that_dies_is_a_finding() -> None:
    (told,) = run.turns("no such generator", 5, 0.0)
    assert told["seed"] == 5
    assert "KeyError" in told["findings"][0]


def test_findings_are_kept_with_what_replays_them(tmp_path: Path, capsys: Any) -> None:
    results = run.Results(tmp_path / "found")
    results.add("commits", {"seed": 3, "count": 60, "findings": [], "seconds": 2.0})
    results.add("commits", {"seed": 4, "count": 20, "findings": ["lost an update"], "seconds": 2.0})
    assert results.by_unit() == {"schedules": 80}
    assert "20.0 a second" in results.table()
    assert "80 schedules" in results.table()
    assert "1 findings" in results.table()
    text = (tmp_path / "found" / "commits-4.txt").read_text()
    assert text == "python tests/differential/run.py --replay commits 4\nlost an update\n\n"
    assert "lost an update" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("fault", list(FAULTS))
def test_every_planted_fault_is_found(fault: str) -> None:
    for generator in FAULTS[fault][1]:
        assert seconds_until_found(fault, generator, 0, 1200) is not None
