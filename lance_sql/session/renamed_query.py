"""A query whose result has the column names of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_sql.session.wrapped_query import WrappedQuery

if TYPE_CHECKING:
    from lance_sql.engines.base import PlannedQuery
    from lance_sql.engines.statement_run import StatementRun


class RenamedQuery(WrappedQuery):
    """`query`, with the names of `plain`, which has columns of the same types."""

    def __init__(self, query: PlannedQuery, plain: PlannedQuery) -> None:
        super().__init__(query)
        self._planned = query
        self._plain = plain
        self._names = [name for name, _ in plain.columns()]

    @property
    def scans(self) -> Mapping[str, int]:
        return self._planned.scans

    def columns(self) -> list[tuple[str, str]]:
        return self._plain.columns()

    def schema(self) -> pa.Schema:
        return self._named(super().schema())

    def to_table(self, run: StatementRun) -> pa.Table:
        return super().to_table(run).rename_columns(self._names)

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        schema, batches = super().stream(run)
        return self._named(schema), (batch.rename_columns(self._names) for batch in batches)

    def _named(self, schema: pa.Schema) -> pa.Schema:
        fields = [field.with_name(name) for field, name in zip(schema, self._names, strict=True)]
        return pa.schema(fields, metadata=schema.metadata)
