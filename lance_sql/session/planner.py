"""Plans the statements of a session with its engine, in ways that read less where there are any."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lance_sql.catalog.prepared import PreparedStatements
from lance_sql.pushdown.filters import require, with_conditions
from lance_sql.pushdown.metadata_aggregates import MetadataAnswers
from lance_sql.pushdown.planning import PushdownPlanner
from lance_sql.pushdown.whole_table import whole_table_aggregates
from lance_sql.session.metrics import final_metrics
from lance_sql.session.searching import PreparedQuery
from lance_sql.text.query_start import runs_when_asked

if TYPE_CHECKING:
    from lance_sql.catalog.binding import Binding, Bound
    from lance_sql.catalog.catalog import Catalog
    from lance_sql.engines.base import Engine, Query
    from lance_sql.searches.statement import Searches
    from lance_sql.searches.table import SearchTable
    from lance_sql.session.explanation import Explanation
    from lance_sql.text.statement import Statement


class Planner:
    """What one session plans, and what it keeps for statements that run again.

    Callers hold the lock of the engine.
    """

    def __init__(self, engine: Engine, catalog: Catalog, binding: Binding) -> None:
        self._engine = engine
        self._binding = binding
        self._metadata = MetadataAnswers(catalog, engine)
        self._pushdowns = PushdownPlanner(engine)
        self._prepared = PreparedStatements(
            binding, lambda text: engine.query(text, None), folds_names=engine.capabilities.folds_names
        )
        #: registered tables of single statements: results of searches
        self._lent: set[str] = set()
        #: those of statements whose results have been released
        self._unused: list[str] = []

    def names(self) -> set[str]:
        """The names under which datasets, parts of them and tables of statements are registered."""
        return self._binding.registered() | self._pushdowns.parts.names() | self._lent

    def query(self, searches: Searches) -> tuple[Query, list[Callable[[], object]]]:
        """The query for a statement, and what to call when its result is released."""
        released: list[Callable[[], object]] = []
        bound = self._bound(searches.statement, searches.tables)
        query: Query | None = self._metadata.known(searches.statement, bound, searches.parameters)
        if query is None:
            planned = self._engine.query(bound.text, searches.parameters)
            self._prepared.ran(searches.statement)
            query = self._metadata.of(searches.statement, bound, planned)
            if query is None:
                parts, query = self._pushdowns.instead(
                    searches.statement, searches.parameters, bound, planned
                )
                if parts is not None:
                    released.append(functools.partial(self._pushdowns.parts.release, parts.tables))
            if self._engine.pushdowns.verify:
                query = self._verified(query, bound, searches)
        if searches.tables:
            query = PreparedQuery(query, searches)
            if not searches.is_view:
                released.append(functools.partial(self._unused.extend, list(searches.tables)))
        return query, released

    def _verified(self, query: Query, bound: Bound, searches: Searches) -> Query:
        """The same query, which also runs without pushdowns."""
        if not runs_when_asked(searches.statement):
            return query
        from lance_sql.pushdown.verified_query import Verification, VerifiedQuery

        engine = self._engine
        words = {token.upper for token in searches.statement.tokens}
        return VerifiedQuery(
            query,
            lambda: engine.query(bound.text, searches.parameters),
            engine.without_pushdowns,
            engine.begin,
            Verification(any_rows=not words.isdisjoint({"LIMIT", "SAMPLE", "TABLESAMPLE", "FETCH"})),
        )

    def explanation(self, searches: Searches, *, analyze: bool) -> Explanation:
        """The plan of a statement, which only runs with `analyze`."""
        from lance_sql.session.explanation import Explanation  # draws plans

        engine, statement, params = self._engine, searches.statement, searches.parameters
        bound = self._bound(statement, searches.tables)
        self._unused.extend(searches.tables)
        if whole_table_aggregates(statement) is not None:
            known = self._metadata.of(statement, bound, engine.query(bound.text, params))
            if known is not None:
                return Explanation(engine.capabilities.name, str(known), ())
        run = engine.begin()
        # Plan only if necessary: planning runs statements that are not queries.
        planned = functools.cache(lambda: engine.query(bound.text, params))
        parts = self._pushdowns.parts.instead(statement, bound, planned, params)
        try:
            begin = self._pushdowns.join_keys(
                bound, lambda: (planned() if parts is None else parts.query).scans
            )
            run.join_keys = None if begin is None else begin()
            conditions = self._pushdowns.conditions(statement, params, bound, lambda: planned().scans)
            require(conditions, run, engine)
            text = bound.text if parts is None else parts.text
            plan = engine.explain(text, params, run, analyze=analyze)
        finally:
            if parts is not None:
                self._pushdowns.parts.release(parts.tables)
        return Explanation(
            engine.capabilities.name,
            plan.text,
            tuple(with_conditions(plan.scans, conditions)),
            tuple(final_metrics(run.scans)) if analyze else (),
            tuple(searches.descriptions()),
            plan.trees,
            () if run.join_keys is None else tuple(run.join_keys.descriptions(analyze)),
            plan.rows,
        )

    def _bound(self, statement: Statement, searched: Mapping[str, SearchTable]) -> Bound:
        """Registers what `statement` names with the engine: datasets, and results of searches."""
        while self._unused:
            name = self._unused.pop()
            self._engine.unregister(name)
            self._lent.discard(name)
        for name, table in searched.items():
            self._engine.register_other(name, table)
        self._prepared.renew(statement)
        self._lent.update(searched)
        return self._binding.bind(statement)
