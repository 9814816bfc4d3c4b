"""Queries with the result of a planned one whose scans read less: which of the ways suit a statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lance_sql.pushdown.dictionary_tables import PartTables, QueryOfParts
from lance_sql.pushdown.filters import NarrowedQuery, ScanCondition, ScanConditions
from lance_sql.pushdown.limit import (
    FirstRowsQuery,
    LimitedQuery,
    column_in_order,
    pays_to_limit,
    pays_to_skip,
)
from lance_sql.text.limits import first_rows, limited, without_offset

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.catalog.binding import Bound
    from lance_sql.engines.base import Engine, Parameters, PlannedQuery, Query
    from lance_sql.engines.join_keys import JoinKeys
    from lance_sql.pushdown.join_filters import JoinedQuery, JoinFilters
    from lance_sql.pushdown.settings import Pushdowns
    from lance_sql.text.statement import Statement


class PushdownPlanner:
    """Applies rules to the statements of a session, and keeps what they find for those that run again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: datasets without the parts of columns that statements do not use
        self.parts = PartTables(engine)
        self._conditions = ScanConditions(engine)
        #: created for the first statement that joins datasets
        self._join_filters: JoinFilters | None = None

    @property
    def _pushdowns(self) -> Pushdowns:
        return self._engine.pushdowns

    def instead(
        self, statement: Statement, parameters: Parameters, bound: Bound, planned: PlannedQuery
    ) -> tuple[QueryOfParts | None, Query]:
        """The query to run instead of the planned one, and what replaces its tables."""
        parts = None
        query: Query | None = self._of_first_rows(statement, bound, planned)
        if query is None:
            parts = self.parts.instead(statement, bound, lambda: planned, parameters)
            chosen = planned if parts is None else parts.query
            query = (
                self._of_any_rows(statement, bound, chosen, parts) or self._of_joins(bound, chosen) or chosen
            )
        conditions = self.conditions(statement, parameters, bound, lambda: planned.scans)
        return parts, NarrowedQuery(query, conditions, self._engine) if conditions else query

    def conditions(
        self,
        statement: Statement,
        parameters: Parameters,
        bound: Bound,
        scans: Callable[[], Mapping[str, int]],
    ) -> Sequence[ScanCondition]:
        """Conditions of `statement` that scans test, although the engine does not offer them."""
        if not self._pushdowns.allow("filters"):
            return ()
        return self._conditions.of(statement, bound.text, parameters, bound.datasets, scans)

    def join_keys(
        self, bound: Bound, scans: Callable[[], Mapping[str, int]]
    ) -> Callable[[], JoinKeys] | None:
        """The keys that scans of a join give to one another, created for each run; None if none do."""
        if len(bound.datasets) < 2 or not self._pushdowns.allow("join_filters"):
            return None
        if self._join_filters is None:
            from lance_sql.pushdown.join_filters import JoinFilters  # slow to import

            self._join_filters = JoinFilters(self._engine.capabilities)
        return self._join_filters.keys(bound.text, bound.datasets, scans, self._pushdowns.force)

    def _of_first_rows(self, statement: Statement, bound: Bound, query: Query) -> FirstRowsQuery | None:
        """A query that reads few rows if only the first rows in the order of a column are needed."""
        if not self._pushdowns.allow("top_n"):
            return None
        wanted = first_rows(statement)
        if wanted is None or bound.text != statement.original:
            return None
        name, dataset = _first_table(statement, bound)
        field = None if dataset is None else column_in_order(dataset, wanted, self._pushdowns.force)
        if field is None:
            return None
        nulls_first = wanted.nulls_first
        if nulls_first is None:
            nulls_first = not self._engine.nulls_are_last(wanted.descending)
        last_key = self._engine.query(wanted.last_key(nulls_first), None)
        return FirstRowsQuery(query, last_key, name, field, wanted, nulls_first)

    def _of_joins(self, bound: Bound, planned: PlannedQuery) -> JoinedQuery | None:
        """A query whose scans of a join exchange keys."""
        begin = self.join_keys(bound, lambda: planned.scans)
        if begin is None:
            return None
        from lance_sql.pushdown.join_filters import JoinedQuery

        return JoinedQuery(planned, begin)

    def _of_any_rows(
        self, statement: Statement, bound: Bound, query: Query, parts: QueryOfParts | None
    ) -> LimitedQuery | None:
        """A query that reads few rows if any rows will do."""
        wanted = limited(statement) if self._pushdowns.allow("limit") else None
        if wanted is None:
            return None
        name, dataset = _first_table(statement, bound)
        if dataset is None:
            return None
        if pays_to_skip(wanted, self._pushdowns.force):
            text = without_offset(bound.text) if parts is None else None
            skipping = None if text is None else self._engine.query(text, None)
            if skipping is not None and skipping.scans.get(name) == 1:
                return LimitedQuery(skipping, name, wanted, skips=True)
        return (
            LimitedQuery(query, name, wanted)
            if pays_to_limit(dataset, wanted, self._pushdowns.force)
            else None
        )


def _first_table(statement: Statement, bound: Bound) -> tuple[str, DatasetVersion | None]:
    """The first table of a statement, and its dataset if it is one."""
    name = next((reference.name for reference in statement.references if reference.certain), "")
    return name, bound.datasets.get(name)
