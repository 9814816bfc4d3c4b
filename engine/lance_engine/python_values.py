"""Arrow values as Python objects, where some are dates or times that Python's types cannot hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as at


def python_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """`values.to_pylist()`; what Python cannot hold, such as a date in the year 10000, is text."""
    try:
        python_values: list[Any] = values.to_pylist()
    except (OverflowError, ValueError):
        python_values = [_value(value) for value in values]
    return python_values


def python_rows(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """`rows.to_pylist()`; what Python cannot hold is text."""
    try:
        python_rows: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        columns = map(python_values, rows.columns)
        python_rows = [dict(zip(rows.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
    return python_rows


def _value(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        pass
    kind = value.type
    if at.is_struct(kind):
        return {name: _value(field) for name, field in value.items()}
    if at.is_map(kind):
        keys, items = (value.values.field(place) for place in range(2))
        return list(zip(python_values(keys), python_values(items), strict=True))
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        return python_values(value.values)
    if at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind):
        text: bytes = value.cast(pa.large_binary()).as_py()
        return text.decode("utf-8", "backslashreplace")
    return str(value.cast(pa.string()))
