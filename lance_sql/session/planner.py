"""Plans the statements of a session with its engine, in ways that read less where there are any."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from lance_engine.errors import UnsupportedFeatureError

from lance_sql.errors import TableNotFoundError
from lance_sql.pushdown.rule import Asked
from lance_sql.pushdown.statement_plan import StatementPlans
from lance_sql.session.metrics import final_metrics
from lance_sql.session.searching import PreparedQuery
from lance_sql.text.kinds import Does

if TYPE_CHECKING:
    from lance_sql.catalog.binding import Binding, Bound
    from lance_sql.catalog.catalog import Catalog
    from lance_sql.catalog.prepared import PreparedStatements
    from lance_sql.engines.base import Engine, Query
    from lance_sql.pushdown.planning import PushdownPlanner
    from lance_sql.searches.statement import Searches
    from lance_sql.searches.table import SearchTable
    from lance_sql.session.explanation import Explanation
    from lance_sql.text.statement import Statement

T = TypeVar("T")


class Planner:
    """What one session plans, and what it keeps for statements that run again.

    Callers hold the lock of the engine.
    """

    def __init__(self, engine: Engine, catalog: Catalog, binding: Binding) -> None:
        self._engine = engine
        self._binding = binding
        self._catalog = catalog
        self._plans = StatementPlans(engine)
        #: registered tables of single statements: results of searches
        self._lent: set[str] = set()
        #: those of statements whose results have been released
        self._unused: list[str] = []

    @cached_property
    def _prepared(self) -> PreparedStatements:
        from lance_sql.catalog.prepared import PreparedStatements

        engine = self._engine
        return PreparedStatements(
            self._binding,
            lambda text: engine.query(text, None),
            folds_names=engine.capabilities.folds_names,
            keeps_plans=engine.capabilities.runs_statements_side_by_side,
        )

    @cached_property
    def _pushdowns(self) -> PushdownPlanner:
        from lance_sql.pushdown.planning import PushdownPlanner  # takes longer to import than a small query

        return PushdownPlanner(self._engine)

    def names(self) -> set[str]:
        """The names under which datasets, parts of them and tables of statements are registered."""
        return self._binding.registered() | self._pushdowns.names() | self._lent

    def query(self, searches: Searches) -> tuple[Query, list[Callable[[], object]]]:
        """The query for a statement, and what to call when its result is released."""
        released: list[Callable[[], object]] = []
        asked = self._asked(searches)
        query: Query | None = None
        # In a transaction, an engine may refuse all statements after an error.
        if asked.is_worth_parsing and self._catalog.transaction is None:
            query = self._pushdowns.known(asked)
        if query is None:
            self._with_views(asked.planned)
            if not searches.statement.does & Does.QUERY:
                self._prepared.ran(searches.statement)
                self._catalog.ran(searches.statement)
            query = asked.planned()
            if asked.is_worth_parsing:
                query, released = self._pushdowns.query(asked)
            if self._engine.pushdowns.verify and searches.statement.does & Does.QUERY:
                from lance_sql.pushdown.verified_query import VerifiedQuery

                query = VerifiedQuery(query, asked)
        if searches.tables:
            query = PreparedQuery(query, searches)
            if not searches.is_view:
                released.append(functools.partial(self._unused.extend, list(searches.tables)))
        return query, released

    def explanation(self, searches: Searches, *, analyze: bool) -> Explanation:
        """The plan of a statement, which only runs with `analyze`."""
        from lance_sql.pushdown.filters import require, with_conditions
        from lance_sql.session.explanation import Explanation  # draws plans

        engine, params, pushdowns = self._engine, searches.parameters, self._pushdowns
        # Plan only if necessary: planning runs statements that are not queries.
        asked = self._asked(searches)
        self._unused.extend(searches.tables)
        answer = pushdowns.metadata_aggregates.applied(asked, None)
        if answer is not None:
            return Explanation(engine.capabilities.name, str(answer), ())
        run = engine.begin()
        coded = pushdowns.coded(asked)
        try:
            begin = pushdowns.join_filters.keys(asked)
            run.join_keys = None if begin is None else begin()
            conditions = pushdowns.filters.conditions(asked)
            require(conditions, run, engine)
            text = asked.plan.statement.original if coded is None else coded.text
            plan = self._with_views(lambda: engine.explain(text, params, run, analyze=analyze))
        finally:
            if coded is not None:
                pushdowns.release(coded)
        return Explanation(
            engine.capabilities.name,
            plan.text,
            tuple(with_conditions(plan.scans, conditions)),
            tuple(final_metrics(run.scans)) if analyze else (),
            tuple(searches.descriptions()),
            plan.trees,
            () if run.join_keys is None else tuple(run.join_keys.descriptions(analyze)),
            plan.rows,
            tuple(pushdowns.described(asked)),
        )

    def _with_views(self, plan: Callable[[], T]) -> T:
        """What `plan` returns; the session may not know all datasets that views read."""
        while True:
            try:
                return plan()
            except TableNotFoundError as error:
                if self._catalog.transaction is not None or not self._binding.supply(error.name):
                    if error.name in self._binding.in_views:
                        self._check_kept(error.name)
                    raise

    def _check_kept(self, name: str) -> None:
        """UnsupportedFeatureError if a table of the engine has the name of what a view reads."""
        table = name.rpartition(".")[2]
        kind = self._catalog.attached.engine_names().kind(table)
        if kind is not None:
            raise UnsupportedFeatureError(
                f"A view, macro or prepared statement reads the dataset {table}, which was dropped; "
                f"the {kind} {table} of the SQL engine does not take its place",
                remedy="Create the view or macro again, or prepare the statement again",
            )

    def _asked(self, searches: Searches) -> Asked:
        """A statement as rules see it, which is not planned yet."""
        bound = self._bound(searches.statement, searches.tables)
        plan = self._plans.of(searches.statement, bound, searches.parameters)
        return Asked(plan, self._engine, searches.parameters)

    def _bound(self, statement: Statement, searched: Mapping[str, SearchTable]) -> Bound:
        """Registers what `statement` names with the engine: datasets, and results of searches."""
        while self._unused:
            name = self._unused.pop()
            self._engine.unregister(name)
            self._lent.discard(name)
        for name, table in searched.items():
            self._engine.register_other(name, table)
        if self._binding.views or not statement.does & Does.QUERY:
            try:
                self._prepared.renew(statement)
            except TableNotFoundError as error:
                self._check_kept(error.name)
                raise
        self._lent.update(searched)
        return self._binding.bind(statement)
