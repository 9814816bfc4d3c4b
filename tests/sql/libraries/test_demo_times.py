"""The demo shows the time of the first run of a query separately from later ones."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from rich.console import Console

from demo.__main__ import QUERY_NUMBERS, Demo
from demo.timing import first_and_warm


def test_first_and_later_runs() -> None:
    runs: list[int] = []

    def run() -> int:
        runs.append(len(runs))
        return runs[-1]

    answer, first, warm = first_and_warm(run, times=3)
    assert (answer, runs) == (0, [0, 1, 2, 3])
    assert first >= 0
    assert warm >= 0


def test_each_query_shows_both_times(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def engine(name: str) -> Any:
        def run(text: str) -> list[tuple[Any, ...]]:
            asked.append((name, text))
            return [(1,)]

        return run

    shown = io.StringIO()
    demo = Demo(Console(file=shown, width=200), tmp_path, 0.1)
    demo.run_queries({"one": engine("one"), "two": engine("two")})
    assert demo.failures == []
    assert len(asked) == 2 * 3 * len(QUERY_NUMBERS)
    assert len(re.findall(r"\d+ / \d+ ms", shown.getvalue())) == 2 * len(QUERY_NUMBERS)
