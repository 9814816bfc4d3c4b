"""SQL expressions over the columns of a row, computed by DuckDB: what is too much for the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.interrupts import load

from lance_sql.scratch import scratch


def compile_value(
    text: str, schema: pa.Schema, *, whole_quotients: bool = False, time_zone: str | None = None
) -> tuple[tuple[str, ...], Callable[[pa.RecordBatch], pa.Array]]:
    """The columns of `schema` that the expression `text` needs, and a function from a batch to its values.

    `whole_quotients` makes ``/`` divide whole numbers into whole numbers, as filters do. `time_zone` is where
    times without a zone are meant, by default the zone of the process.

    It must compute one value from one row: InvalidFilterError for aggregates, window functions and queries,
    and for what DuckDB does not understand.
    """
    load("sqlglot")
    import sqlglot
    from sqlglot import exp

    try:
        parsed = sqlglot.parse_one(text, dialect="duckdb", into=exp.Condition)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidFilterError(
            f"Not a valid SQL expression: {text}",
            remedy="Use an expression over the columns, for example price * 1.1",
        ) from error
    if any(True for kind in (exp.AggFunc, exp.Window, exp.Query) for _ in parsed.find_all(kind)):
        raise InvalidFilterError(
            f"A value can only use columns of its own row: {text}",
            remedy="Compute it with a query, and merge the result on a key",
        )
    columns = _columns(parsed, schema)
    compute = _function(parsed.sql(dialect="duckdb"), whole_quotients, time_zone)
    # On no rows: what DuckDB does not understand is known before anything is written.
    compute(pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in columns])))
    return columns, compute


def _columns(parsed: Any, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that may be meant by the names in the expression; one to count rows if none exists."""
    from sqlglot import exp

    if parsed.find(exp.Star):
        return tuple(schema.names)
    names = {part.name.lower() for column in parsed.find_all(exp.Column) for part in column.parts}
    return tuple(name for name in schema.names if name.lower() in names) or tuple(schema.names[:1])


def _without_halves(table: pa.Table) -> pa.Table:
    """A table with half precision floats as single ones: DuckDB has no type for them."""
    fields = [
        field.with_type(pa.float32()) if pa.types.is_float16(field.type) else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _function(
    expression: str, whole_quotients: bool, time_zone: str | None
) -> Callable[[pa.RecordBatch], pa.Array]:
    import duckdb

    def compute(batch: pa.RecordBatch) -> pa.Array:
        with scratch() as connection:
            if whole_quotients:
                connection.execute("SET integer_division = true")
            if time_zone is not None:
                connection.execute("SET TimeZone = ?", [time_zone])
            connection.register("batch", _without_halves(pa.Table.from_batches([batch])))
            try:
                result = connection.sql(f"SELECT ({expression}) AS value FROM batch").to_arrow_table()
            except duckdb.BinderException as error:
                raise ColumnNotFoundError(str(error)) from error
            except duckdb.Error as error:
                problem = str(error).partition("\n")[0]  # without the line of a query that nobody wrote
                raise InvalidFilterError(f"Cannot compute the value {expression}: {problem}") from error
        return result.column(0).combine_chunks()

    return compute
