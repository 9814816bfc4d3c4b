"""Aggregates of a whole table from metadata: ``SELECT min(x), max(x), count(*) FROM 'x.lance'``.

Only columns with the same order in every engine have one: no floats, because engines treat NaN and zeros
differently. The engine determines names and types of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.types as at

from lance_sql.engines.finished import Finished
from lance_sql.pushdown.rule import Asked
from lance_sql.syntax.scopes import BoundQuery
from lance_sql.syntax.shapes import plain_select
from lance_sql.types.python_values import is_alike

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion
    from lance_engine.scan import Extremes

    from lance_sql.engines.base import Engine, Query
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.pushdown.statement_plan import StatementPlan


class Aggregate(NamedTuple):
    """``count(*)``, or ``min`` or ``max`` of `column`."""

    function: str
    column: str | None

    def __str__(self) -> str:
        return f"{self.function}({self.column or '*'})"


class Aggregates(NamedTuple):
    """The aggregates of a dataset that a statement selects."""

    table: str
    values: tuple[Aggregate, ...]


def whole_table_aggregates(query: BoundQuery) -> Aggregates | None:
    """The aggregates of a statement that only selects these, over all rows of a dataset; None for others."""
    from sqlglot import exp

    plain = plain_select(query)
    if plain is None:
        return None
    values = []
    for item in plain.select.expressions:
        call: Any = item.unalias()
        function = {exp.Count: "count", exp.Max: "max", exp.Min: "min"}.get(type(call))
        given = {name for name, value in call.args.items() if value and name != "big_int"}
        if function is None or given != {"this"}:
            return None
        if function == "count":
            if type(call.this) is not exp.Star or any(call.this.args.values()):
                return None
            values.append(Aggregate("count", None))
            continue
        place = query.column(plain.scope, call.this)
        if place is None:
            return None
        values.append(Aggregate(function, place.column))
    return Aggregates(plain.occurrence.table, tuple(values)) if values else None


class MetadataAggregates:
    """The rule."""

    name = "metadata_aggregates"
    words = (frozenset({"COUNT", "MAX", "MIN"}),)

    def hindrance(self, engine: Engine) -> str:
        return "functions replace count, min or max" if engine.replaces_aggregates() else ""

    def known(self, plan: StatementPlan, engine: Engine) -> Finished | None:
        """The answer that was given before, without planning the statement; None if it has to be planned."""
        rows = plan.known("answer")
        return None if rows is None or not engine.pushdowns.allow(self.name) else Finished(rows)

    def applied(self, asked: Asked, query: Query | None = None) -> MetadataQuery | None:
        aggregates = self._wanted(asked)
        if aggregates is None:
            return None
        engine, plan = asked.engine, asked.plan
        dataset = plan.datasets[aggregates.table]
        kinds = [
            dataset.storage_schema.field(value.column).type for value in aggregates.values if value.column
        ]
        has_strings = any(at.is_string(kind) or at.is_large_string(kind) for kind in kinds)

        def holds() -> bool:
            """Whether the engine computes the aggregates as metadata has them."""
            return not engine.replaces_aggregates() and (not has_strings or engine.compares_bytes())

        def answered(rows: pa.Table) -> None:
            if engine.state is not None:  # a change gives the statement another plan
                plan.note("answer", rows)

        if not holds():
            return None
        return MetadataQuery(query or asked.planned(), dataset, aggregates.values, holds, answered)

    def described(self, asked: Asked) -> str | None:
        return None  # there is no plan

    def _wanted(self, asked: Asked) -> Aggregates | None:
        query = asked.bound(self)
        aggregates = (
            None if query is None else asked.plan.fact(self.name, lambda: whole_table_aggregates(query))
        )
        if aggregates is None:
            return None
        schema = asked.plan.datasets[aggregates.table].storage_schema
        columns = [value.column for value in aggregates.values if value.column is not None]
        return aggregates if all(_is_ordered_alike(schema.field(column).type) for column in columns) else None


class MetadataQuery:
    """The aggregates of `dataset`; computed by the engine if its result types differ, or not `holds()`.

    `answered` is called with the rows if they come from metadata, as they are for Python.
    """

    def __init__(
        self,
        query: Query,
        dataset: DatasetVersion,
        values: Sequence[Aggregate],
        holds: Callable[[], bool],
        answered: Callable[[pa.Table], None],
    ) -> None:
        self._query = query
        self._dataset = dataset
        self._holds = holds
        self._answered = answered
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
                _as_type(pa.array([self._value(value, min_max)]), field.type)
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

    def _value(self, value: Aggregate, min_max: Callable[[str], Extremes]) -> pa.Scalar:
        if value.column is None:
            return pa.scalar(self._dataset.count_rows())
        bounds = min_max(value.column)
        return bounds.minimum if value.function == "min" else bounds.maximum

    def __str__(self) -> str:
        """The plan, for EXPLAIN."""
        return f"answered from metadata, without a scan: {', '.join(map(str, self.values))}"


def _as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A cast if needed: a count should not wait for the import of casts."""
    return array if array.type == kind else array.cast(kind)


def _is_ordered_alike(kind: pa.DataType) -> bool:
    return bool(
        at.is_integer(kind)
        or at.is_decimal128(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
        or at.is_string(kind)
        or at.is_large_string(kind)
    )
