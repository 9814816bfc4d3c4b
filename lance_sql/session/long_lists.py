"""Statements with long lists of constants, whose engine gets the constants as tables instead.

Parsing ``x IN (1, 2, ...)`` with thousands of constants takes an engine longer than the query, and it parses
a text twice: for its columns, and to run it. So the list becomes a table in memory, and the scan of the
dataset tests the same condition first, as if the engine had offered it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.types as at
from lance_engine.arrow_values import of_numpy, to_numpy

from lance_sql.text.long_lists import LEAST_LENGTH, LongList, integers, long_lists, strings
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.expr.tree import Column

    from lance_sql.catalog.binding import Bound
    from lance_sql.engines.base import Engine
    from lance_sql.session.scan_conditions import ScanCondition

_numbers = itertools.count()


class ShortenedText(NamedTuple):
    """A text with `tables` instead of lists, which are registered, and the `conditions` for scans."""

    text: str
    tables: Sequence[str] = ()
    conditions: Sequence[ScanCondition] = ()


def shortened(statement: Statement, bound: Bound, engine: Engine) -> ShortenedText:
    """The text of a bound statement without long lists.

    Unchanged for several datasets, because engines may then know more of a list than of a table, and while
    strings are compared in a special order.
    """
    unchanged = ShortenedText(bound.text)
    if not engine.capabilities.parses_slowly or len(bound.text) < LEAST_LENGTH or len(bound.datasets) != 1:
        return unchanged
    read = statement if bound.text == statement.original else Statement(bound.text)
    found = long_lists(read)
    if not found or not engine.compares_bytes():
        return unchanged
    text, tables, conditions = bound.text, [], []
    for listed in sorted(found, key=lambda listed: listed.constants.start, reverse=True):
        column = _column(listed, bound.datasets)
        values = None if column is None else _values(listed, column.type)
        if column is None or values is None:
            continue
        name = f"lance_list_{next(_numbers)}"
        engine.register_other(name, pa.Table.from_arrays([values], names=["value"]))
        tables.append(name)
        token = listed.constants
        text = f"{text[: token.start]}SELECT value FROM {name}{text[token.end :]}"
        conditions += _conditions(listed, column, values, bound.datasets)
    return ShortenedText(text, tables, conditions)


def _column(listed: LongList, datasets: Mapping[str, DatasetVersion]) -> Column | None:
    """The column that is compared with a list; None if it is not certainly one of a dataset."""
    from lance_sql.session.scan_conditions import named_column

    tables = listed.select.tables
    if not listed.select.once.issuperset(tables.values()) or not datasets.keys() >= set(tables.values()):
        return None
    schemas = {qualifier: datasets[table].storage_schema for qualifier, table in tables.items()}
    json: set[Column] = set()
    found = named_column(schemas, {}, json, listed.column)
    return None if found in json else found


def _values(listed: LongList, kind: pa.DataType) -> pa.Array | None:
    """The constants of a list, if engines compare the type of the column with theirs as they are."""
    if at.is_signed_integer(kind):
        return integers(listed.constants.text)
    return strings(listed.constants.text) if at.is_string(kind) or at.is_large_string(kind) else None


def _conditions(
    listed: LongList, column: Column, values: pa.Array, datasets: Mapping[str, DatasetVersion]
) -> list[ScanCondition]:
    """What the scan of the table tests; nothing if no constant is in the range of its column."""
    from lance_engine.expr.build import negate
    from lance_engine.expr.tree import SummarizedIn

    from lance_sql.engines.key_conditions import integer_bounds
    from lance_sql.engines.pushdown import Condition
    from lance_sql.session.scan_conditions import ScanCondition, decide_on

    (table,) = listed.select.tables.values()
    summary = f"{len(values):,} constants"
    if at.is_signed_integer(column.type):
        least, most = integer_bounds(column.type)
        numbers = to_numpy(values)
        values = of_numpy(numbers[(numbers >= least) & (numbers <= most)].astype(str(column.type)))
    if not len(values):
        return []
    if values.type != column.type:  # large strings
        values = values.cast(column.type)
    node = SummarizedIn(column, values, summary=summary)
    condition = Condition(datasets[table], negate(node) if listed.is_negated else node)
    decision = decide_on(condition)
    if not decision.pushed:
        condition.forget_plan()
    return [ScanCondition(table, condition, decision)]
