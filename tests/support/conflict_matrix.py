"""What becomes of a change while which another one is committed: measured, and printed in docs/operations.md.

Each change runs up to the call that commits it; then the other one runs to its end, and the first goes on.
`python tests/support/conflict_matrix.py` writes the table; a test compares it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

from lance_engine.errors import CommitConflictError
from lance_engine.table import commit
from lance_engine.table.conflicts import Verdict, check
from simulated_changes import explain, simulation, without_pauses
from simulated_store import Choice, Run

PAGE: Final = Path(__file__).parents[2] / "docs" / "operations.md"
_BEGIN, _END = "<!-- conflicts: begin -->\n", "<!-- conflicts: end -->\n"

#: Changes by their names in `simulated_changes`, and what the page calls them.
SHOWN: Final[dict[str, str]] = {
    "append": "append",
    "overwrite": "overwrite",
    "delete": "delete",
    "update": "update",
    "replace column": "replace column",
    "insert new keys": "merge that inserts",
    "upsert": "merge",
    "compact": "compact",
    "create index": "create index",
    "optimize index": "optimize indices",
    "drop index": "drop index",
    "add column": "add column",
    "drop column": "drop column",
    "rename column": "rename column",
    "alter column": "alter type",
    "restore": "restore",
    "config": "configure",
    "tag": "tag",
    "branch": "branch",
    "clean up": "clean up",
}
#: How a change goes on, by the worst verdict on its first attempt.
_GOES_ON: Final = {Verdict.COMPATIBLE: "as it is", Verdict.REBASE: "merged", Verdict.RETRY: "runs again"}
#: What can become of a change, in the order of the page.
_OUTCOMES: Final = (*_GOES_ON.values(), "conflicts", "fails")


def outcome(first: str, second: str, stable: bool = False) -> str:
    """What becomes of the first change if the second one is committed just before it."""
    verdicts: list[Verdict] = []

    def noted(mine: Any, theirs: Any) -> Verdict:
        verdicts.append(check(mine, theirs))
        return verdicts[-1]

    with without_pauses(), mock.patch.object(commit, "check", noted):
        simulated = simulation((first, second), stable)
        # The second begins when the first has done all but its last call that others can see.
        alone = simulated.run()
        calls = [place for place, choice in enumerate(alone.choices) if choice.writer == 0]
        place = _commit_of(alone, calls)
        verdicts.clear()
        run = simulated.run([Choice(0)] * place + [Choice(1)])
    explain(run, (first, second), stable)
    end = run.outcomes[0]
    if end.kind == "refused":
        return "conflicts" if isinstance(end.error, CommitConflictError) else "fails"
    assert end.kind == "done", end
    return _GOES_ON[max(verdicts, default=Verdict.COMPATIBLE)]


def _commit_of(run: Run, calls: list[int]) -> int:
    """The step in which the first writer commits, or its last step if it makes no version."""
    commits = [place for place in calls if run.calls[place].startswith(("put_if_absent _versions", "rename"))]
    return commits[0] if commits else calls[-1]


def pairs() -> Iterator[tuple[str, str]]:
    """All pairs of the page."""
    return ((first, second) for first in SHOWN for second in SHOWN)


def row(first: str) -> str:
    found: dict[str, list[str]] = {text: [] for text in _OUTCOMES}
    for second in SHOWN:
        found[outcome(first, second)].append(SHOWN[second])
    cells = [_listed(names) for names in found.values()]
    return f"| {SHOWN[first]} | {' | '.join(cells)} |"


def _listed(names: list[str]) -> str:
    if len(names) > len(SHOWN) / 2:
        return "all others"
    return ", ".join(names) or "-"


def table() -> str:
    head = "| this change | is committed as it is after | merged with | runs again after "
    head += "| conflicts after | fails after |"
    return "\n".join([head, "|---|---|---|---|---|---|", *map(row, SHOWN)]) + "\n"


def page(text: str) -> str:
    """The page with the table as it is now."""
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{after}"


if __name__ == "__main__":
    print(table()) if "--print" in sys.argv else PAGE.write_text(page(PAGE.read_text()))
