"""Queries that need no column of some tables, only the number of rows that pass a condition.

DuckDB then asks for the first column. If the text does not name that column, its values do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lance_sql.session.wrapped_query import WrappedQuery
from lance_sql.text.named_columns import named_columns

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import PlannedQuery, Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.text.statement import Statement


class CountedRowsQuery(WrappedQuery):
    """`query`, which does not use the first column of the `tables`."""

    def __init__(self, query: Query, tables: frozenset[str]) -> None:
        super().__init__(query)
        self._tables = tables

    def prepare(self, run: StatementRun) -> None:
        run.counted = self._tables


def counted_tables(
    statement: Statement, datasets: Mapping[str, DatasetVersion], planned: PlannedQuery
) -> frozenset[str]:
    """The tables of a statement that certainly does not use their first column."""
    named = named_columns(statement)
    if named is None or not datasets.keys() >= named.tables.keys():
        return frozenset()
    first = {name: datasets[name].storage_schema.names[:1] for name in named.tables}
    unused = [name for name, columns in first.items() if columns and columns[0].lower() not in named.words]
    # A macro that scans a table, too, may use all of its columns.
    scans = planned.scans if unused else {}
    return frozenset(name for name in unused if scans.get(name) == named.tables[name])
