"""Aggregates of a whole table from metadata: ``SELECT min(x), max(x), count(*) FROM 'x.lance'``.

Only this form is supported, and only columns with the same order in every engine: no floats, because engines
treat NaN and zeros differently. All other queries are left to the engine, which also determines names and
types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.types as at

from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, closing
from lance_sql.types.python_values import is_alike

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan.extremes import Extremes

    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun


class Aggregate(NamedTuple):
    """``count(*)``, or ``min`` or ``max`` of `column`."""

    function: str
    column: Token | None


@once_per_statement
def whole_table_aggregates(statement: Statement) -> list[Aggregate] | None:
    """The aggregates of a statement that only selects these, over all rows of one table; None for others."""
    tokens = list(statement.tokens)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens or tokens[0].upper != "SELECT":
        return None
    found = []
    position = 0
    while position == 0 or (position < len(tokens) and tokens[position].text == ","):
        aggregate, position = _aggregate(tokens, position + 1)
        if aggregate is None:
            return None
        found.append(aggregate)
    table = tokens[position + 1 :]
    if position >= len(tokens) or tokens[position].upper != "FROM" or not table:
        return None
    travels = len(table) > 2 and table[1].upper == "AT" and closing(table, 2) == len(table) - 1
    one = table[0].kind in ("string", "quoted", "word") and (len(table) == 1 or travels)
    return found if one else None


def _aggregate(tokens: Sequence[Token], position: int) -> tuple[Aggregate | None, int]:
    """The aggregate at `position` with its alias, and the next position."""
    call = tokens[position : position + 4]
    if len(call) < 4 or call[0].kind != "word" or (call[1].text, call[3].text) != ("(", ")"):
        return None, position
    position += 4
    if position + 1 < len(tokens) and tokens[position].upper == "AS":
        position += 2
    if call[0].upper == "COUNT" and call[2].text == "*":
        return Aggregate("count", None), position
    if call[0].upper in ("MIN", "MAX") and call[2].kind in ("word", "quoted"):
        return Aggregate(call[0].text.lower(), call[2]), position
    return None, position


class MetadataQuery:
    """The aggregates of `dataset`; computed by the engine if its result types differ, or not `holds()`.

    `answered` is called with the rows if they come from metadata, as they are for Python.
    """

    def __init__(
        self,
        query: Query,
        dataset: DatasetVersion,
        values: Sequence[tuple[str, str | None]],
        holds: Callable[[], bool],
        answered: Callable[[pa.Table], None],
    ) -> None:
        self._query = query
        self._dataset = dataset
        self._holds = holds
        self._answered = answered
        #: function and column of each result
        self.values = values

    def schema(self) -> pa.Schema:
        return self._query.schema()

    def to_table(self, run: StatementRun) -> pa.Table:
        if not self._holds():
            return self._query.to_table(run)
        schema = self._query.schema()
        min_max = cache(self._dataset.min_max)
        try:
            arrays = [
                _as_type(pa.array([self._value(*value, min_max)]), field.type)
                for value, field in zip(self.values, schema, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return self._query.to_table(run)
        rows = pa.Table.from_arrays(arrays, schema=schema)
        if all(map(is_alike, self.kinds())):
            self._answered(rows)
        return rows

    def kinds(self) -> Sequence[Any]:
        return self._query.kinds()

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        table = self.to_table(run)
        return table.schema, iter(table.to_batches())

    def _value(self, function: str, column: str | None, min_max: Callable[[str], Extremes]) -> pa.Scalar:
        if column is None:
            return pa.scalar(self._dataset.count_rows())
        bounds = min_max(column)
        return bounds.minimum if function == "min" else bounds.maximum

    def __str__(self) -> str:
        """The plan, for EXPLAIN."""
        parts = [f"{function}({column or '*'})" for function, column in self.values]
        return f"answered from metadata, without a scan: {', '.join(parts)}"


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A cast if needed: a count should not wait for the import of casts."""
    return array if array.type == kind else array.cast(kind)


def named_columns(
    aggregates: Sequence[Aggregate], dataset: DatasetVersion, folds: bool
) -> list[tuple[str, str | None]] | None:
    """Function and column of each aggregate, None if the engine has to compute them.

    `folds`: unquoted names are converted to lower case, unless a setting of the session keeps them, otherwise
    they match in any case. The engine has found all columns: one that exists in one spelling only is meant.
    """
    names = dataset.schema.names
    found: list[tuple[str, str | None]] = []
    for function, token in aggregates:
        if token is None:
            found.append((function, None))
            continue
        if token.kind == "quoted" or folds:
            wanted = {token.value} if token.kind == "quoted" else {token.value, token.value.lower()}
            matches = [name for name in names if name in wanted]
        else:
            matches = [name for name in names if name.lower() == token.value.lower()]
        if len(matches) != 1 or not _is_ordered_alike(dataset.storage_schema.field(matches[0]).type):
            return None
        found.append((function, matches[0]))
    return found


def _is_ordered_alike(kind: pa.DataType) -> bool:
    return bool(
        at.is_integer(kind)
        or at.is_decimal128(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
        or at.is_string(kind)
        or at.is_large_string(kind)
    )
