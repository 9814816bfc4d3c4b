"""Row counts for DataFusion's planner: small Lance tables of a join are read first.

DataFusion does not ask a Python dataset for statistics, so it cannot distinguish the small side of a join
from the large one. It does know the exact size of tables in memory. So, before a statement with several scans
runs, the columns it needs from the smallest tables are read into memory, as many tables as fit a budget of
bytes, and the statement is planned again with these tables. A table that is scanned several times is then
also decoded only once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from datafusion import SessionContext, Table
from lance_engine.arrow_compute import pc
from lance_engine.errors import LanceError
from lance_engine.expr.from_arrow import from_arrow
from lance_engine.expr.tree import columns_of
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.engines.datafusion.planning import PlannedScan, Planning
from lance_sql.engines.datafusion.table import DataFusionTable
from lance_sql.engines.table_scan import from_the_start
from lance_sql.text.semi_joins import JoinedTable, semi_joins_first
from lance_sql.text.tokens import quote, spellings

#: Bytes of a statement's tables that are read before it runs, by default.
MATERIALIZE_BYTES = 256 << 20

#: Statements that do nothing until their rows are read, so that they can be planned twice.
_QUERY = re.compile(r"[\s(]*(?:SELECT|WITH)\b", re.IGNORECASE)

_SCAN = re.compile(
    r"^\s*TableScan: (?P<table>.+?)(?: projection=\[(?P<columns>.*?)\])?(?:, \w+=\[.*)?$", re.M
)

#: Larger batches are cut, so that all partitions have work.
_MIN_ROWS_TO_CUT = 1 << 14


@dataclass(frozen=True, slots=True)
class Side:
    """What a plan reads from one table: `columns` of the rows that pass `filter`, about `size` bytes."""

    name: str
    table: DataFusionTable
    columns: frozenset[str]
    filter: pc.Expression | None
    size: int


class Planned:
    """A DataFrame, and the tables that it scans, one entry per scan."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @cached_property
    def scans(self) -> list[str]:
        return [scan["table"] for scan in _SCAN.finditer(self.frame.logical_plan().display_indent())]


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
    sides = []
    for side in sorted(_sides(tables, noted, plan.scans), key=lambda side: side.size):
        budget -= side.size
        if budget < 0:
            break
        sides.append(side)
    return sides


def planned_with_counts(
    context: SessionContext, sides: Sequence[Side], text: str, plan: Callable[[str], Any], prefix: str = ""
) -> Any:
    """The DataFrame of `prefix` and `text` over `sides` in memory; None if these are insufficient."""
    if not sides:
        return None
    with _in_memory(context, sides):
        text = semi_joins_first(text, _tables(sides), lambda query: _is_query(query, plan))
        frame = plan(text)
        if not _needs_no_more(frame, sides):
            return None
        return plan(prefix + text) if prefix else frame


def _tables(sides: Sequence[Side]) -> dict[str, JoinedTable]:
    """The tables in memory, under the names that a text may use."""
    return {
        spelling: JoinedTable(side.table.schema.names, side.table.table.num_rows)
        for side in sides
        for spelling in spellings(side.name)
    }


def _is_query(text: str, plan: Callable[[str], Any]) -> bool:
    """Whether `text` can be planned on its own."""
    try:
        plan(text)
    except Exception:  # DataFusion has no specific class
        return False
    return True


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
                columns |= columns_of(from_arrow(predicate, table.schema))
        # A filter may be applied if it is the same in every scan of the table; scans that the planner has not
        # shown so far would be noticed as a difference in number.
        common = len({str(predicate) for _, predicate in asked}) == 1
        counted = scans.count(name) == len(asked)
        needed = pa.schema([field for field in table.schema if field.name in columns])
        yield Side(
            name,
            table,
            frozenset(columns),
            asked[0].filter if common and counted else None,
            max(1, estimated_row_bytes(needed)) * table.table.num_rows,
        )


@contextmanager
def _in_memory(context: SessionContext, sides: Sequence[Side]) -> Iterator[None]:
    """Tables in memory under the names of `sides`."""
    batches = [_read(side) for side in sides]
    try:
        for side, parts in zip(sides, batches, strict=True):
            for name in spellings(side.name):
                context.deregister_table(quote(name))
                context.register_record_batches(
                    quote(name), [part for part in (parts[::2], parts[1::2]) if part]
                )
        yield
    finally:
        for side in sides:
            for name in spellings(side.name):
                context.deregister_table(quote(name))
                context.register_table(quote(name), Table(side.table))


def _read(side: Side) -> list[pa.RecordBatch]:
    """The rows of `side` with all columns of the table; columns that are not needed are null."""
    schema = side.table.schema
    names = [name for name in schema.names if name in side.columns]
    table = side.table.table
    batches = list(table.scan(names, side.filter, run=side.table.runs.current).batches())
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


def _needs_no_more(frame: Any, sides: Sequence[Side]) -> bool:
    """Whether the new plan reads only the columns that were read."""
    scans: dict[str, set[str]] = {}
    for scan in _SCAN.finditer(frame.optimized_logical_plan().display_indent()):
        columns = None if scan["columns"] is None else set(scan["columns"].split(", ")) - {""}
        scans.setdefault(scan["table"], set()).update(columns if columns is not None else {"*"})
    return all(side.name in scans and scans[side.name] <= side.columns for side in sides)


def check_budget(budget: int | None) -> int:
    """The budget of a session; LanceError if it is negative."""
    if budget is not None and budget < 0:
        raise LanceError("materialize_bytes must not be negative", remedy="Use 0 to disable reading ahead")
    return MATERIALIZE_BYTES if budget is None else budget
