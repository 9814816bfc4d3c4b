"""Random queries return in sessions what the engines return for the same rows in memory.

``LANCE_SQL_SEEDS=100-200 LANCE_SQL_STATEMENTS=300`` runs others, and more of each. A difference is printed
with the seed that replays it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from compared_queries import differences
from counts import examples
from reduced_queries import reduced

FIRST, _, END = os.environ.get("LANCE_SQL_SEEDS", f"0-{examples(2)}").partition("-")
SEEDS = range(int(FIRST), int(END))
STATEMENTS = int(os.environ.get("LANCE_SQL_STATEMENTS", "150"))


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize("seed", SEEDS)
def test_sessions_return_what_engines_return(tmp_path: Path, engine: str, seed: int) -> None:
    found = list(differences(tmp_path, seed, engine, STATEMENTS))
    assert not found, "\n".join(map(str, found))


def test_a_query_is_reduced_to_what_shows_a_fault() -> None:
    long = (
        "SELECT t.a AS c0, sum(t.b) AS c1 FROM t JOIN u ON t.a = u.a "
        "WHERE (t.a > 1 AND NOT (t.b IN (1, 2, 3))) OR t.a IS NULL GROUP BY t.a ORDER BY 1 LIMIT 5"
    )
    assert (
        reduced(long, lambda text: "IN (" in text and "2" in text)
        == "SELECT t.b AS c1 FROM t WHERE t.b IN (2)"
    )
