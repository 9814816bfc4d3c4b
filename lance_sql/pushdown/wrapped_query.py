"""Queries that do something before another query runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun


class WrappedQuery:
    """`query`; subclasses override `prepare`, which is called before each run."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def prepare(self, run: StatementRun) -> None:
        """Called before the query runs."""

    def schema(self) -> pa.Schema:
        return self._query.schema()

    def to_table(self, run: StatementRun) -> pa.Table:
        self.prepare(run)
        return self._query.to_table(run)

    def kinds(self) -> Sequence[Any]:
        return self._query.kinds()

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        self.prepare(run)
        return self._query.stream(run)
