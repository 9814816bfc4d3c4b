"""Row counts of filtered scans for DuckDB's planner.

DuckDB asks a table for its rows before it offers conditions, and plans with that number even where the scan
accepts conditions that few rows pass. So a join is planned beforehand, to see what is accepted, and planned
again for its execution with what is then left of each table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_sql.engines.base import Decision
from lance_sql.engines.duckdb.pushdown import is_small

if TYPE_CHECKING:
    from lance_sql.engines.duckdb.table import DuckDBTable


@dataclass(slots=True)
class Planned:
    """What DuckDB asked of a table while it planned: scans, and conditions that it offered."""

    scans: int = 0
    decisions: list[Decision] = field(default_factory=list)


class Planning:
    """What DuckDB asks of the tables of a session while it plans, and what they answer."""

    def __init__(self) -> None:
        self._planned: dict[DuckDBTable, Planned] | None = None
        self._expected: Mapping[DuckDBTable, int] = {}

    @contextmanager
    def noted(self) -> Iterator[dict[DuckDBTable, Planned]]:
        """What DuckDB asks in the block, of each table that it scans."""
        planned: dict[DuckDBTable, Planned] = {}
        self._planned = planned
        try:
            yield planned
        finally:
            self._planned = None

    @contextmanager
    def expecting(self, rows: Mapping[DuckDBTable, int]) -> Iterator[None]:
        """Let statements that are planned in the block count on `rows`."""
        self._expected = rows
        try:
            yield
        finally:
            self._expected = {}

    def rows(self, table: DuckDBTable) -> int:
        """The rows of a table that DuckDB is about to scan: those that are expected, or all."""
        if self._planned is not None:
            self._planned.setdefault(table, Planned()).scans += 1
        expected = self._expected.get(table)
        return table.table.num_rows if expected is None else expected

    def decided(self, table: DuckDBTable, decision: Decision) -> None:
        """A condition that DuckDB offered was accepted or not."""
        if self._planned is not None:
            self._planned.setdefault(table, Planned()).decisions.append(decision)


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
