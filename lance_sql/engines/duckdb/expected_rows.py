"""Row counts of filtered scans for DuckDB's planner.

DuckDB asks a table for its rows before it offers conditions, and plans with that number even where the scan
accepts conditions that few rows pass. So a join is planned beforehand, to see what is accepted, and planned
again for its execution with what is then left of each table.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from lance_sql.engines.duckdb.table import DuckDBTable, Planned
from lance_sql.engines.pushdown import is_small


@contextmanager
def planning(sources: Collection[DuckDBTable]) -> Iterator[dict[DuckDBTable, Planned]]:
    """What DuckDB asks of `sources` in the block; at its end, of those among them that it scans."""
    planned = {source: Planned() for source in sources}
    for source, noted in planned.items():
        source.planned = noted
    try:
        yield planned
    finally:
        for source, noted in list(planned.items()):
            source.planned = None
            if not noted.scans:
                del planned[source]


def may_expect_fewer(planned: Mapping[DuckDBTable, Planned]) -> bool:
    """Whether a statement joins tables of which one is large enough for its scan to accept conditions."""
    scans = sum(noted.scans for noted in planned.values())
    return scans > 1 and not all(is_small(source.table.dataset) for source in planned)


def expected_rows(planned: Mapping[DuckDBTable, Planned]) -> dict[DuckDBTable, int]:
    """How many rows pass the conditions that the scans of a join accept.

    Without tables that accept nothing, or are scanned several times.
    """
    if not may_expect_fewer(planned):
        return {}
    shares = {
        source: math.prod(decision.share for decision in set(noted.decisions) if decision.pushed)
        for source, noted in planned.items()
        if noted.scans == 1
    }
    return {
        source: max(1, round(source.table.num_rows * share)) for source, share in shares.items() if share < 1
    }


@contextmanager
def expecting(rows: Mapping[DuckDBTable, int]) -> Iterator[None]:
    """Let statements that are planned in the block count on `rows`."""
    for source, count in rows.items():
        source.expected = count
    try:
        yield
    finally:
        for source in rows:
            source.expected = None
