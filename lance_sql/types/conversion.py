"""Values in Arrow as values of a column: DuckDB casts them, as it does for INSERT and UPDATE."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import without_extensions

from lance_sql.scratch import scratch
from lance_sql.types.casts import stored_value
from lance_sql.types.declared import has_wide_decimals, is_known
from lance_sql.types.relations import register_table
from lance_sql.types.row_numbers import by_number, numbers
from lance_sql.types.stored import in_type


def converted(values: pa.Array, field: pa.Field) -> pa.Array | None:
    """The values as those of a column; None if Arrow casts them as DuckDB does, or if DuckDB cannot.

    ArrowInvalid for a value that cannot be converted.
    """
    import duckdb

    values = without_extensions(values)
    if not is_known(field) and _is_left_to_arrow(values.type, field.type):
        return None
    # Values in the type of the column are read as those of the column, which checks them.
    given = field.with_name("value") if values.type.equals(field.type) else pa.field("value", values.type)
    rows = pa.table([values, numbers(len(values))], pa.schema([given, pa.field("number", pa.int64())]))
    with scratch() as connection:
        if at.is_timestamp(field.type) and field.type.tz is not None:
            # A time without a zone is one of the zone of the column.
            connection.execute("SET TimeZone = ?", [field.type.tz])
        try:
            register_table(connection, "computed", rows)
            text = f"SELECT {stored_value('value', field)} AS value, number FROM computed"
            results = connection.sql(text).to_arrow_table()
        except duckdb.Error as error:
            raise pa.ArrowInvalid(str(error).partition("\n")[0]) from error
    result = by_number(results.column(0), results.column(1), len(values))
    assert result is not None, "a cast returns one value for each row"
    return in_type(result, field.type)


def _is_left_to_arrow(given: pa.DataType, wanted: pa.DataType) -> bool:
    wanted = wanted.value_type if at.is_dictionary(wanted) else wanted
    if given.equals(wanted) or at.is_null(given) or any(map(has_wide_decimals, (given, wanted))):
        return True
    if not _is_list(given):
        return _is_number(given) and _is_number(wanted)
    while _is_list(given) and _is_list(wanted):
        given, wanted = given.value_type, wanted.value_type
    # In lists, Arrow refuses to round.
    return given.equals(wanted) or (_is_number(given) and at.is_floating(wanted) and not at.is_decimal(given))


def _is_list(kind: pa.DataType) -> bool:
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))
