"""Searches in the statements of a session."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.base import Engine, Parameters, Query
from lance_sql.engines.statement_run import StatementRun
from lance_sql.pushdown.wrapped_query import WrappedQuery
from lance_sql.searches.statement import Searches

if TYPE_CHECKING:
    from lance_sql.searches.prepared import PreparedSearches
    from lance_sql.session.sql_session import SqlSession


class SessionSearches:
    """What searches need from the session `session`."""

    def __init__(self, session: SqlSession, engine: Engine) -> None:
        self._session = session
        self._engine = engine
        self.by_index = False

    @cached_property
    def prepared(self) -> PreparedSearches:
        from lance_sql.searches.prepared import PreparedSearches

        return PreparedSearches()

    @property
    def catalog(self) -> Catalog:
        return self._session.catalog

    def rows_of(self, text: str, params: Parameters = None) -> pa.Table:
        return self._session.select(text, params).arrow()

    def compute(self, expression: str) -> Any:
        row = self._session.computing().sql(f"SELECT {expression}").fetchone()
        assert row is not None
        return row[0]

    def nulls_are_last(self, descending: bool) -> bool:
        with self._engine.lock:
            return self._engine.nulls_are_last(descending)


class PreparedQuery(WrappedQuery):
    """A query with searches: their inputs are read when it runs, not when it is planned."""

    def __init__(self, query: Query, searches: Searches) -> None:
        super().__init__(query)
        self._searches = searches

    def prepare(self, run: StatementRun) -> None:
        self._searches.prepare()

    def to_table(self, run: StatementRun) -> pa.Table:
        if self._searches.is_explained:
            return self._explained(self._query.to_table(run))
        return super().to_table(run)

    def _explained(self, plan: pa.Table) -> pa.Table:
        """The plan of the engine, which is two columns of text, and descriptions of the searches."""
        if plan.num_columns != 2 or not all(pa.types.is_string(kind) for kind in plan.schema.types):
            return plan
        told = [(name, "\n".join(lines)) for name, lines in self._searches.descriptions()]
        columns = [pa.array(texts, pa.string()) for texts in zip(*told, strict=True)]
        return pa.concat_tables([plan, pa.table(columns, schema=plan.schema)])

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self._searches.is_explained:
            plan = self.to_table(run)
            return plan.schema, iter(plan.to_batches())
        return super().stream(run)
