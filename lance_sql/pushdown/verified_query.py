"""Queries that run with and without pushdowns, whose rows must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_sql.pushdown.verification import check_included, check_same, verification_of

if TYPE_CHECKING:
    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.pushdown.rule import Asked


class VerifiedQuery:
    """`query`, which also runs without pushdowns each time."""

    def __init__(self, query: Query, asked: Asked) -> None:
        self._query = query
        self._asked = asked

    def schema(self) -> pa.Schema:
        return self._query.schema()

    def kinds(self) -> Sequence[Any]:
        return self._query.kinds()

    def to_table(self, run: StatementRun) -> pa.Table:
        table = self._query.to_table(run)
        statement = self._asked.plan.statement
        verification, kinds = verification_of(statement), self._query.kinds()
        if verification is not None:
            check_same(table, self._plain(statement.original), verification, kinds)
            if verification.everything is not None:
                check_included(table, self._plain(verification.everything), kinds)
        return table

    def _plain(self, text: str) -> pa.Table:
        """The rows of a text without pushdowns."""
        engine = self._asked.engine
        with engine.without_pushdowns():
            return engine.query(text, self._asked.parameters).to_table(engine.begin())

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        rows = self.to_table(run)
        return rows.schema, iter(rows.to_batches())
