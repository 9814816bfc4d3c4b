"""Queries that do something before another query runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.types.duckdb_values import Convert


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

    def converters(self) -> Sequence[Convert | None]:
        return self._query.converters()

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        self.prepare(run)
        return self._query.stream(run)
