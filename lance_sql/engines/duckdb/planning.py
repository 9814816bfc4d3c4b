"""Row counts of filtered scans for DuckDB's planner.

DuckDB asks a table for its row count before it offers conditions, and plans with that number even if the scan
accepts conditions that few rows pass. So a join is planned twice: first to see which conditions are accepted,
and then, for execution, with the estimated number of rows that remain of each table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_sql.engines.base import Decision
from lance_sql.pushdown_settings import Pushdowns

if TYPE_CHECKING:
    from lance_sql.engines.duckdb.table import DuckDBTable


@dataclass(slots=True)
class Planned:
    """What DuckDB requested from a table while planning: scans, and conditions that it offered."""

    scans: int = 0
    decisions: list[Decision] = field(default_factory=list)


class Planning:
    """Records what DuckDB requests from the tables of a session while planning, and gives it row counts.

    `pushdowns` returns which rules the current statement uses.
    """

    def __init__(self, pushdowns: Callable[[], Pushdowns] = Pushdowns) -> None:
        self.pushdowns = pushdowns
        self._planned: dict[DuckDBTable, Planned] | None = None
        self._expected: Mapping[DuckDBTable, int] = {}

    @contextmanager
    def noted(self) -> Iterator[dict[DuckDBTable, Planned]]:
        """Record what DuckDB requests from each table that it scans in this block."""
        planned: dict[DuckDBTable, Planned] = {}
        self._planned = planned
        try:
            yield planned
        finally:
            self._planned = None

    @contextmanager
    def expecting(self, rows: Mapping[DuckDBTable, int]) -> Iterator[None]:
        """Use `rows` as row counts for statements that are planned in this block."""
        self._expected = rows
        try:
            yield
        finally:
            self._expected = {}

    def rows(self, table: DuckDBTable) -> int:
        """The row count of a table that DuckDB is about to scan: the expected count, or that of all rows."""
        if self._planned is not None:
            self._planned.setdefault(table, Planned()).scans += 1
        expected = self._expected.get(table)
        return table.table.num_rows if expected is None else expected

    def decided(self, table: DuckDBTable, decision: Decision) -> None:
        """Record whether a condition that DuckDB offered was accepted."""
        if self._planned is not None:
            self._planned.setdefault(table, Planned()).decisions.append(decision)


def may_expect_fewer(planned: Mapping[DuckDBTable, Planned]) -> bool:
    """Whether a statement joins tables, one of them large enough for its scan to accept conditions."""
    if sum(noted.scans for noted in planned.values()) < 2:
        return False
    from lance_sql.engines.pushdown import is_small

    return not all(is_small(source.table.dataset) for source in planned)


def expected_rows(planned: Mapping[DuckDBTable, Planned]) -> dict[DuckDBTable, int]:
    """How many rows pass the conditions accepted by the scans of a join.

    Excludes tables that accept no conditions, or are scanned several times.
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
