"""The types that filters cast to, by their names in sqlglot."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_engine.errors import InvalidFilterError
from lance_engine.expr import render
from lance_engine.expr.sql_names import SQL_TYPES

# Units of timestamps by the number of digits after the point.
_PRECISIONS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
# The names that sqlglot has for some types, if they are others.
_PARSED = {
    "INTEGER": ("INT",),
    "UINTEGER": ("UINT",),
    "VARCHAR": ("VARCHAR", "TEXT"),
    "BLOB": ("VARBINARY", "BINARY"),
    "TIMESTAMP": ("TIMESTAMP", "TIMESTAMPNTZ"),
    "TIMESTAMP WITH TIME ZONE": ("TIMESTAMPTZ", "TIMESTAMPLTZ"),
}
_TYPES = {parsed: kind for name, kind in SQL_TYPES.items() for parsed in _PARSED.get(name, (name,))} | {
    "INT128": pa.decimal128(38, 0)
}


def named_type(parsed: Any) -> pa.DataType:
    """The type that a sqlglot expression names; `InvalidFilterError` if filters do not cast to it."""
    name = parsed.this.name if hasattr(parsed.this, "name") else str(parsed.this)
    if name in ("DECIMAL", "BIGDECIMAL"):
        texts = [size.this.name for size in parsed.expressions] or ["18", "3"]
        sizes = [int(text) for text in texts if text.isdecimal()]
        precision, scale = sizes[0] if sizes else 0, sizes[1] if len(sizes) > 1 else 0
        if len(sizes) != len(texts) or len(sizes) > 2 or not 0 < precision <= 76 or scale > precision:
            raise InvalidFilterError(
                f"{parsed.sql(dialect='duckdb')} is not a type",
                remedy="Write DECIMAL(precision, scale) with up to 76 digits",
            )
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if name in ("TIMESTAMP", "TIMESTAMPNTZ") and len(parsed.expressions) == 1:
        digits = parsed.expressions[0].this.name
        if digits.isdigit() and int(digits) in _PRECISIONS:
            return pa.timestamp(_PRECISIONS[int(digits)])
    if name not in _TYPES or parsed.expressions:
        raise InvalidFilterError(
            f"Filters cannot cast to {parsed.sql(dialect='duckdb')}",
            remedy=f"Use one of {', '.join(dict.fromkeys(map(render.type_name, _TYPES.values())))}",
        )
    return _TYPES[name]
