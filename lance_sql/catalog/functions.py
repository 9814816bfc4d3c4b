"""Filter functions that the engine does not implement, evaluated by DataFusion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import literal_text

from lance_sql.types.row_numbers import by_number, number_name, numbers

_ROW = number_name(())
_tables = itertools.count()


def compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """The scalar function `name` of DataFusion over arrays of equal length, or constants.

    LookupError if the function does not exist, or does not always return the same for the same row;
    InvalidFilterError if it cannot be evaluated, or the package datafusion is missing.
    """
    try:
        is_known = name in _functions()
    except ModuleNotFoundError:
        raise InvalidFilterError(
            f"Unknown function {name} for filters without DataFusion, which computes most of them: "
            "pip install 'lance-sql[datafusion]'",
            remedy="Or use the function in a query",
        ) from None
    if not is_known:
        raise LookupError(name)
    arrays = {f"a{place}": value for place, value in enumerate(values) if not _is_inlined(value)}
    rows = next((len(value) for value in arrays.values() if not isinstance(value, pa.Scalar)), 1)
    if rows == 0:
        # For the type of the result; some functions fail without rows.
        filled = [value if isinstance(value, pa.Scalar) else pa.nulls(1, value.type) for value in values]
        return compute(name, filled).slice(0, 0)
    columns = {
        column: pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value
        for column, value in arrays.items()
    }
    columns[_ROW] = numbers(rows)
    arguments = ", ".join(
        literal_text(value) if _is_inlined(value) else f"a{place}" for place, value in enumerate(values)
    )
    context, table = _context(), f"values_{next(_tables)}"
    context.register_record_batches(table, [[pa.RecordBatch.from_pydict(columns)]])
    try:
        results = context.sql(f"SELECT {name}({arguments}) AS value, {_ROW} FROM {table}").to_arrow_table()
    except (KeyboardInterrupt, SystemExit):
        raise
    except (
        BaseException
    ) as error:  # DataFusion's errors have no specific class, and its panics are not even Python exceptions
        text = str(error)
        if "Invalid function" in text or "No function matches" in text or "Failed to coerce" in text:
            raise LookupError(name) from error
        raise InvalidFilterError(f"{name}({arguments}) cannot be computed: {text[:300]}") from error
    finally:
        context.deregister_table(table)
    result = by_number(results["value"], results[_ROW], rows)
    if result is None:
        raise InvalidFilterError(f"{name}({arguments}) does not have one value for each row")
    return result.cast(pa.string()) if at.is_string_view(result.type) else result


def _is_inlined(value: pa.Array | pa.Scalar) -> bool:
    """Whether a constant is written into the query: some functions accept only literals."""
    if not isinstance(value, pa.Scalar) or not value.is_valid:
        return False
    kind = value.type
    return bool(
        at.is_string(kind)
        or at.is_integer(kind)
        or at.is_boolean(kind)
        or at.is_duration(kind)
        or (at.is_timestamp(kind) and kind.tz is None and kind.unit == "us")
    )


@cache
def _context() -> Any:
    """Tables are registered under distinct names, so that threads can share it."""
    from datafusion import SessionConfig, SessionContext

    # One partition, because the rows of a batch are few.
    return SessionContext(SessionConfig().with_target_partitions(1).with_information_schema(True))


@cache
def _functions() -> frozenset[str]:
    """The functions whose value only depends on their arguments."""
    routines = _context().sql(
        "SELECT DISTINCT routine_name FROM information_schema.routines "
        "WHERE function_type = 'SCALAR' AND is_deterministic AND routine_name <> 'version'"
    )
    # The planner replaces make_map, so that it is not in the list.
    return frozenset([*routines.to_arrow_table()["routine_name"].to_pylist(), "make_map"])
