"""Queries with a small LIMIT that avoid reading the other rows.

If any rows will do, their number is passed to the scan, and the rows that OFFSET skips are not read. If a
column orders them, that column is read first, to find its value in the last of the requested rows. The
statement itself then scans only rows up to that value, so that zone maps skip most of the table and other
columns are decoded for few rows. The engine still sorts and limits the result: rows with equal values are all
included.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as at
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.pushdown.wrapped_query import WrappedQuery

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr.tree import Node

    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.text.limits import FirstRows, Limited

#: Smaller tables are read in the time that a second query takes.
_SMALL_BYTES = 8 << 20
#: Maximum share of requested rows, as 1 in this many.
_SHARE = 20
#: Maximum number of requested rows.
_MOST_ROWS = 100_000
#: Reading fewer rows takes less time than planning the statement once more.
_LEAST_SKIPPED = 10_000


class FirstRowsQuery(WrappedQuery):
    """`query`, for which `last_key` finds the value of a column in the last row.

    `name` is the name of the table in the engine.
    """

    def __init__(
        self,
        query: Query,
        last_key: Query,
        name: str,
        field: pa.Field,
        wanted: FirstRows,
        nulls_first: bool,
    ) -> None:
        super().__init__(query)
        self._last_key = last_key
        self._name = name
        self._field = field
        self._wanted = wanted
        self._nulls_first = nulls_first

    def prepare(self, run: StatementRun) -> None:
        condition = self._condition(self._last_key.to_table(run))
        if condition is not None:
            run.require(self._name, condition)

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        rows = self.to_table(run)
        return rows.schema, iter(rows.to_batches())

    def _condition(self, last: pa.Table) -> Node | None:
        """A condition that all rows up to the last one meet; None if unknown, or if all rows meet it."""
        from lance_engine.expr import build
        from lance_engine.expr.tree import Literal

        if not last.num_rows:
            return None
        column = build.column(pa.schema([self._field]), [self._field.name])
        is_null = build.is_null(column)
        try:
            value = last.column(0).cast(self._field.type)[0]
        except pa.ArrowInvalid:
            return None
        if not value.is_valid:
            return is_null if self._nulls_first else None
        if at.is_floating(value.type) and math.isnan(value.as_py()):
            return None  # engines disagree about its position
        parts = [build.compare(">=" if self._wanted.descending else "<=", column, Literal(value))]
        if at.is_floating(value.type):
            parts.append(build.compare("=", column, Literal(pa.scalar(math.nan, self._field.type))))
        return build.disjunction([*parts, is_null] if self._nulls_first else parts)


class LimitedQuery(WrappedQuery):
    """`query`, which only needs some rows of the table that its engine calls `name`.

    `skips`: the query has no OFFSET, the scan skips these rows.
    """

    def __init__(self, query: Query, name: str, wanted: Limited, *, skips: bool = False) -> None:
        super().__init__(query)
        self._name = name
        self._wanted = wanted
        self._skips = skips

    def prepare(self, run: StatementRun) -> None:
        skipped, last = self._wanted.skipped, self._wanted.skipped + self._wanted.rows
        if self._wanted.tested:  # the engine may filter rows itself: the number that it reads is unknown
            run.expected[self._name] = last
        else:
            run.ranges[self._name] = range(skipped if self._skips else 0, last)


def pays_to_limit(dataset: DatasetVersion, wanted: Limited, force: bool) -> bool:
    """Whether a scan benefits from the number of requested rows, if it also reads the skipped ones."""
    rows = wanted.skipped + wanted.rows
    return force or (rows <= _MOST_ROWS and rows < dataset.count_rows())


def pays_to_skip(wanted: Limited, force: bool) -> bool:
    """Whether a scan should skip the rows before the requested ones."""
    pays = wanted.skipped >= _LEAST_SKIPPED and wanted.rows <= _MOST_ROWS
    return not wanted.tested and (pays or (force and wanted.skipped > 0))


def column_in_order(dataset: DatasetVersion, wanted: FirstRows, force: bool) -> pa.Field | None:
    """The ordering column, if it pays to read it before all other selected columns."""
    schema = dataset.storage_schema
    named = [field for field in schema if field.name.lower() == wanted.column.lower()]
    if len(named) != 1 or not _is_ordered_alike(named[0].type):
        return None
    if force:
        return named[0]
    read_first = wanted.tested | {named[0].name.lower()}
    late = [
        field
        for field in schema
        if field.name.lower() not in read_first
        and (wanted.selects_all or field.name.lower() in wanted.selected)
    ]
    first = [field for field in schema if field.name.lower() in read_first]
    rows = dataset.count_rows()
    if wanted.rows * _SHARE > rows or rows * estimated_row_bytes(schema) < _SMALL_BYTES:
        return None
    if not late or estimated_row_bytes(pa.schema(late)) < estimated_row_bytes(pa.schema(first)):
        return None
    return named[0]


def _is_ordered_alike(kind: pa.DataType) -> bool:
    """Whether scans and engines agree on the order of values, whatever collation is set."""
    return bool(
        at.is_integer(kind)
        or at.is_float32(kind)
        or at.is_float64(kind)
        or at.is_decimal128(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
    )
