"""The one way to commit changes: the constraints of the table are checked first."""

from __future__ import annotations

from functools import partial
from typing import Final

from lance_engine.constraints.check import RowChecks
from lance_engine.table.commit import commit as commit_unchecked

#: `lance_engine.table.commit.commit`, which describes it, with the checks of rows.
commit: Final = partial(commit_unchecked, checks=RowChecks)
