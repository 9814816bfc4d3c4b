"""SQL expressions over the columns of a row, evaluated by DuckDB if the engine cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from lance_engine.base import load
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError, SchemaMismatchError

from lance_sql.scratch import scratch
from lance_sql.types.casts import stored_value
from lance_sql.types.conversion import converted
from lance_sql.types.relations import register_table
from lance_sql.types.row_numbers import by_number, number_name, numbers
from lance_sql.types.stored import stored


class DuckDBCompiler:
    """Values of `Dataset.update` and others, computed and converted by DuckDB."""

    def compile(
        self, text: str, schema: pa.Schema, target: pa.Field | None = None
    ) -> tuple[tuple[str, ...], Callable[[pa.RecordBatch], pa.Array]]:
        """See `compile_value`."""
        return compile_value(text, schema, target, whole_quotients=True)

    def convert(self, values: pa.Array, target: pa.Field) -> pa.Array | None:
        """See `converted`."""
        return converted(values, target)


def compile_value(
    text: str,
    schema: pa.Schema,
    target: pa.Field | None = None,
    *,
    whole_quotients: bool = False,
    time_zone: str | None = None,
) -> tuple[tuple[str, ...], Callable[[pa.RecordBatch], pa.Array]]:
    """The columns of `schema` that the expression `text` needs, and a function from batches to values.

    The values are cast to the type of the column `target`, if given. `whole_quotients` makes ``/`` divide
    integers into integers, as in filters. `time_zone` applies to times without a zone; the default is the
    local time zone.

    The expression must compute one value per row: InvalidFilterError for aggregates, window functions,
    queries, and anything that DuckDB does not accept.
    """
    load("sqlglot")
    import sqlglot
    from sqlglot import exp

    try:
        parsed = sqlglot.parse_one(text, dialect="duckdb", into=exp.Condition)
    except RecursionError as error:
        raise InvalidFilterError(
            "The expression is nested too deeply", remedy="Use fewer parentheses"
        ) from error
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
    if parsed.find(exp.Star):
        raise InvalidFilterError(
            f"A value cannot use * for all columns: {text}", remedy="Write the names of the columns"
        )
    columns = _columns(parsed, schema)
    compute = _function(text, target, whole_quotients, time_zone)
    # Evaluated on no rows first, so that invalid expressions fail before anything is written.
    compute(pa.RecordBatch.from_pylist([], schema=pa.schema([schema.field(name) for name in columns])))
    return columns, compute


def _columns(parsed: Any, schema: pa.Schema) -> tuple[str, ...]:
    """The columns that names in the expression may refer to; if none, one column to count rows by."""
    from sqlglot import exp

    names = {part.name.lower() for column in parsed.find_all(exp.Column) for part in column.parts}
    return tuple(name for name in schema.names if name.lower() in names) or tuple(schema.names[:1])


def _function(
    expression: str, target: pa.Field | None, whole_quotients: bool, time_zone: str | None
) -> Callable[[pa.RecordBatch], pa.Array]:
    import duckdb

    value = f"({expression}\n)"  # it may end in a comment
    if target is not None:
        value = stored_value(value, target)

    def compute(batch: pa.RecordBatch) -> pa.Array:
        row = number_name(batch.schema.names)
        rows = pa.Table.from_batches([batch]).append_column(row, numbers(batch.num_rows))
        with scratch() as connection:
            if whole_quotients:
                connection.execute("SET integer_division = true")
            if time_zone is not None:
                connection.execute("SET TimeZone = ?", [time_zone])
            register_table(connection, "batch", rows)
            try:
                text = f"SELECT {value} AS value, {row} FROM batch"
                result = connection.sql(text).to_arrow_table()
            except duckdb.BinderException as error:
                raise ColumnNotFoundError(str(error)) from error
            except duckdb.Error as error:
                problem = str(error).partition("\n")[0]  # without the line of a generated query
                raise InvalidFilterError(f"Cannot compute the value {expression}: {problem}") from error
        values = by_number(result.column(0), result.column(1), batch.num_rows)
        if values is None:
            raise SchemaMismatchError(
                f"Got {result.num_rows} values for {batch.num_rows} rows from {expression}",
                remedy="Use an expression with exactly one value per row",
            )
        return values if target is None else stored(values, target)

    return compute
