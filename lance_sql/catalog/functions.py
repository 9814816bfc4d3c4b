"""Filter functions that the engine does not implement, evaluated by DataFusion."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import render

# Functions without arguments whose value does not depend on when they are called.
_CONSTANTS = frozenset(["pi"])
_numbers = itertools.count()


def compute(name: str, values: Sequence[pa.Array | pa.Scalar]) -> pa.Array:
    """The scalar function `name` of DataFusion over arrays of equal length, or constants.

    LookupError if the function does not exist, InvalidFilterError if it cannot be evaluated per row.
    """
    if not name.replace("_", "").isalnum() or not (values or name in _CONSTANTS):
        raise LookupError(name)
    arrays = {f"a{place}": value for place, value in enumerate(values) if not _is_inlined(value)}
    rows = next((len(value) for value in arrays.values() if not isinstance(value, pa.Scalar)), 1)
    if rows == 0:
        # Two rows are enough to infer the type, and to check for one value per row.
        filled = [value if isinstance(value, pa.Scalar) else pa.nulls(2, value.type) for value in values]
        return compute(name, filled).slice(0, 0)
    columns = {
        column: pa.array([value.as_py()] * rows, value.type) if isinstance(value, pa.Scalar) else value
        for column, value in arrays.items()
    } or {"a": pa.nulls(rows, pa.int8())}
    arguments = ", ".join(
        render.literal(value) if _is_inlined(value) else f"a{place}" for place, value in enumerate(values)
    )
    context, table = _context(), f"values_{next(_numbers)}"
    context.register_record_batches(table, [[pa.RecordBatch.from_pydict(columns)]])
    try:
        found = context.sql(f"SELECT {name}({arguments}) AS value FROM {table}").to_arrow_table()
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
    result = found["value"].combine_chunks()
    if len(result) != rows:
        raise LookupError(name)  # an aggregate
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
    import datafusion

    return datafusion.SessionContext()
