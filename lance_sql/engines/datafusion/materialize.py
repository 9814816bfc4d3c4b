"""Row counts for DataFusion's planner: small Lance tables of a join are read first.

DataFusion does not ask a Python dataset for statistics, so it cannot distinguish the small side of a join
from the large one. It does know the exact size of tables in memory. So, before a statement with several scans
runs, the columns it needs from the smallest tables are read into memory, as many tables as fit a budget of
bytes, and the statement is planned again with these tables. A table that is scanned several times is then
also decoded only once. Tables of which only few rows pass the statement's filter count with these rows.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext, Table
from lance_engine.errors import LanceError
from lance_engine.expr import arrow_filter, columns_of
from lance_engine.scan import estimated_row_bytes, from_the_start

from lance_sql.engines.datafusion.planning import PlannedScan, Planning
from lance_sql.engines.datafusion.table import DataFusionTable
from lance_sql.engines.datafusion.versions import scanned_tables
from lance_sql.engines.sampling import sampled_share
from lance_sql.text.tokens import quote, spellings

#: Bytes of a statement's tables that are read before it runs, by default.
MATERIALIZE_BYTES = 256 << 20

#: Statements that do nothing until their rows are read, so that they can be planned twice.
_QUERY = re.compile(r"(?:[\s(]|--[^\n]*\n|/\*.*?\*/)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)

#: Number of places at which rows of a table are sampled.
_SAMPLED_PLACES = 8
#: Maximum number of different filters of a table, whose scans share the rows that are read ahead.
_MOST_FILTERS = 4
#: Bytes after which reading a table ahead stops, beyond twice its estimated size.
_SPARE_BYTES = 16 << 20

#: Larger batches are cut, so that all partitions have work.
_MIN_ROWS_TO_CUT = 1 << 14


@dataclass(frozen=True, slots=True)
class Side:
    """What a plan reads from one table: `columns` of the rows that pass `filter`, about `size` bytes.

    `is_sampled`: the size is an estimate from a sample of rows, otherwise a maximum.
    """

    name: str
    table: DataFusionTable
    columns: frozenset[str]
    filter: pc.Expression | None
    size: int
    is_sampled: bool = False

    def with_passing_rows(self) -> Side:
        """The side with the size of the rows that are likely to pass its filter."""
        dataset = self.table.table.dataset
        if self.filter is None or not dataset.snapshot.is_local:
            return self
        plan = self.table.table.filters.of_expression(self.filter)
        share = sampled_share(dataset, plan, places=_SAMPLED_PLACES)
        return replace(self, size=max(1, int(self.size * share)), is_sampled=True)


class Planned:
    """A DataFrame, and the tables that it scans, one entry per scan."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @cached_property
    def scans(self) -> list[str]:
        return [scan.table for scan in scanned_tables(self.frame.logical_plan())]


def small_sides(
    tables: Mapping[str, DataFusionTable],
    planning: Planning,
    text: str,
    planned: Callable[[], Planned],
    budget: int,
) -> list[Side]:
    """The tables of the statement `text` to read ahead; see the module.

    `planned` returns its plan, `tables` are the Lance tables of the session by name, and `planning` records
    the scans of plans. No tables are read ahead for statements with a single scan, and for texts that are not
    just a query.
    """
    if budget <= 0 or not _QUERY.match(text):
        return []
    plan = planned()
    if len(plan.scans) < 2:
        return []
    with planning.noted() as noted:
        plan.frame.execution_plan()
    candidates = [
        side if side.size <= budget else side.with_passing_rows()
        for side in _sides(tables, noted, plan.scans)
    ]
    sides = []
    for side in sorted(candidates, key=lambda side: side.size):
        budget -= side.size
        if budget < 0:
            break
        sides.append(side)
    return sides


def planned_with_counts(
    context: SessionContext,
    sides: Sequence[Side],
    text: str,
    plan: Callable[[str], Any],
    prefix: str = "",
) -> Any:
    """The DataFrame of `prefix` and `text` over `sides` in memory; None if these are insufficient."""
    read = [(side, batches) for side in sides if (batches := _read(side)) is not None]
    if not read:
        return None
    with _in_memory(context, read):
        frame = plan(text)
        if not _needs_no_more(frame, [side for side, _ in read]):
            return None
        return plan(prefix + text) if prefix else frame


def _sides(
    tables: Mapping[str, DataFusionTable],
    planned: Mapping[DataFusionTable, Sequence[PlannedScan]],
    scans: Sequence[str],
) -> Iterator[Side]:
    for name, table in tables.items():
        asked = planned.get(table)
        if not asked:
            continue
        columns: set[str] = set()
        for names, predicate in asked:
            columns.update(names)
            if predicate is not None:
                columns |= columns_of(arrow_filter(predicate, table.schema))
        # Scans that the planner has not shown so far would be noticed as a difference in number.
        counted = scans.count(name) == len(asked)
        needed = pa.schema([field for field in table.schema if field.name in columns])
        yield Side(
            name,
            table,
            frozenset(columns),
            _any_of([predicate for _, predicate in asked]) if counted else None,
            max(1, estimated_row_bytes(needed)) * table.table.num_rows,
        )


def _any_of(filters: Sequence[pc.Expression | None]) -> pc.Expression | None:
    """The condition that rows pass at least one of some filters; None if any row does."""
    by_text = {str(predicate): predicate for predicate in filters}
    distinct = [predicate for predicate in by_text.values() if predicate is not None]
    if len(distinct) < len(by_text) or len(distinct) > _MOST_FILTERS:
        return None
    return functools.reduce(operator.or_, distinct)


@contextmanager
def _in_memory(context: SessionContext, sides: Sequence[tuple[Side, list[pa.RecordBatch]]]) -> Iterator[None]:
    """Tables in memory under the names of `sides`."""
    try:
        for side, parts in sides:
            for name in spellings(side.name):
                context.deregister_table(quote(name))
                context.register_record_batches(
                    quote(name), [part for part in (parts[::2], parts[1::2]) if part]
                )
        yield
    finally:
        for side, _ in sides:
            for name in spellings(side.name):
                context.deregister_table(quote(name))
                context.register_table(quote(name), Table(side.table))


def _read(side: Side) -> list[pa.RecordBatch] | None:
    """The rows of `side` with all columns of the table; columns that are not needed are null.

    None if there are many more rows than estimated.
    """
    schema = side.table.schema
    names = [name for name in schema.names if name in side.columns]
    batches = _batches(side, names)
    if batches is None:
        return None
    if len(batches) == 1 and batches[0].num_rows > _MIN_ROWS_TO_CUT:
        half = batches[0].num_rows // 2
        batches = [batches[0].slice(0, half), from_the_start(batches[0].slice(half))]
    rows = max((batch.num_rows for batch in batches), default=0)
    nulls = {field.name: pa.nulls(rows, field.type) for field in schema if field.name not in side.columns}
    nullable = pa.schema([field.with_nullable(True) for field in schema], metadata=schema.metadata)
    full = [
        pa.RecordBatch.from_arrays(
            [
                nulls[name].slice(0, batch.num_rows) if name in nulls else batch.column(name)
                for name in schema.names
            ],
            schema=nullable,
        )
        for batch in batches
    ]
    return full or [
        pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=nullable)
    ]


def _batches(side: Side, names: Sequence[str]) -> list[pa.RecordBatch] | None:
    run, table = side.table.runs.current, side.table.table
    keys = None if run is None else run.join_keys
    if keys is not None:
        keys.read_ahead(table.name)
    batches, size = [], 0
    for batch in table.scan(names, side.filter, run=run).batches():
        batches.append(batch)
        size += batch.nbytes
        if side.is_sampled and size > 2 * side.size + _SPARE_BYTES:
            if keys is not None:
                keys.not_read_ahead(table.name)
            return None
    return batches


def _needs_no_more(frame: Any, sides: Sequence[Side]) -> bool:
    """Whether the new plan reads only the columns that were read."""
    scans: dict[str, set[str]] = {}
    for scan in scanned_tables(frame.optimized_logical_plan()):
        scans.setdefault(scan.table, set()).update({"*"} if scan.columns is None else scan.columns)
    return all(side.name in scans and scans[side.name] <= side.columns for side in sides)


def check_budget(budget: int | None) -> int:
    """The budget of a session; LanceError if it is negative."""
    if budget is not None and budget < 0:
        raise LanceError("materialize_bytes must not be negative", remedy="Use 0 to disable reading ahead")
    return MATERIALIZE_BYTES if budget is None else budget
