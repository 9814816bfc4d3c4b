"""How much random tests draw: few in a quick run, ten times as many behind `make test-all`."""

from __future__ import annotations

import os

FACTOR = int(os.environ.get("LANCE_SQL_EXAMPLES", "1"))


def examples(quick: int) -> int:
    """The number of examples, seeds or rounds of a test that draws `quick` of them in a quick run."""
    return quick * FACTOR
