"""Random INSERT, UPDATE, DELETE, MERGE, COPY, ALTER and CREATE TABLE AS: the same tables as in plain DuckDB.

`LANCE_SQL_STATEMENTS=20000` runs more of them; `LANCE_SQL_SEED` chooses the first ones.
"""

from __future__ import annotations

import os

import pytest
from random_changes import run

COUNT = int(os.environ.get("LANCE_SQL_STATEMENTS", "80"))
SEED = int(os.environ.get("LANCE_SQL_SEED", "0"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("engine", "share"), [("duckdb", 1.0), ("datafusion", 0.4)])
def test_tables_are_equal_after_each_statement(engine: str, share: float) -> None:
    outcomes, differences = run(SEED, int(COUNT * share), engine)
    assert not differences, "\n".join(differences)
    assert outcomes["run"] > outcomes.total() / 2, outcomes
