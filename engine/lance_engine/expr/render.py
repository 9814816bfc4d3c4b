"""SQL text (DuckDB dialect) for names, types and constants; it parses back to the same thing."""

from __future__ import annotations

import datetime
import decimal
import math
import re

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lance_engine.expr.sql_names import SQL_NAMES
from lance_engine.expr.value_types import MILLISECONDS_PER_DAY, PER_SECOND, is_list

#: pyarrow compute functions that have a name in SQL; the others are rendered by their pyarrow name.
SQL_FUNCTIONS = {
    "utf8_lower": "lower",
    "utf8_upper": "upper",
    "utf8_length": "length",
    "utf8_trim_whitespace": "trim",
    "utf8_ltrim_whitespace": "ltrim",
    "utf8_rtrim_whitespace": "rtrim",
    "abs": "abs",
    "abs_checked": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "coalesce": "coalesce",
    "year": "year",
    "month": "month",
    "day": "day",
    "hour": "hour",
    "minute": "minute",
    "is_nan": "isnan",
}

#: Functions that are written as operators.
OPERATORS = {
    "bit_wise_and": "&",
    "bit_wise_or": "|",
    "concatenated": "||",
    "nested_equal": "=",
    "nested_less": "<",
    "nested_less_equal": "<=",
    "shift_left": "<<",
    "shift_right": ">>",
}

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: Names that a parser could take for something other than a column.
_RESERVED_WORDS = """
    all alter analyse analyze and any array as asc asymmetric between both call case cast check
    collate column connect_by_root constraint create cross current_catalog current_date current_time
    current_timestamp current_user default deferrable desc describe distinct do drop else end except
    execute explain false fetch for force foreign from glob grant group having if ilike in initially
    inner insert install intersect interval into join lambda lateral leading like limit localtime
    localtimestamp map not notnull null offset on only optimize or order outer partitioned_by pivot
    pivot_longer pivot_wider placing positional prepare primary qualify references regexp rename
    reset returning revoke rlike rollback select session_user show some summarize symmetric table
    tablesample then to trailing true uncache union unique unpivot using vacuum variadic when where
    window with xor
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def identifier(name: str) -> str:
    """`name` as SQL, quoted unless it is plain."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def string(text: str) -> str:
    """`text` as a SQL string constant."""
    return "'" + text.replace("'", "''") + "'"


def type_name(kind: pa.DataType) -> str:
    """The SQL name of an Arrow type (the Arrow name where SQL has none)."""
    if at.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if at.is_timestamp(kind) and kind.tz is not None:
        return "TIMESTAMPTZ"
    if at.is_time(kind):
        return "TIME"
    if at.is_duration(kind):
        return "INTERVAL"
    return SQL_NAMES.get(kind, str(kind))


def literal(value: pa.Scalar) -> str:
    """A constant as SQL."""
    kind = value.type
    if not value.is_valid:
        return "NULL"
    if at.is_boolean(kind):
        return "TRUE" if value.as_py() else "FALSE"
    if at.is_floating(kind):
        return _floating(float(value.as_py()), kind)
    if at.is_decimal(kind):
        return _decimal(value.as_py(), kind)
    if at.is_date(kind):
        days = value.value if at.is_date32(kind) else value.value // MILLISECONDS_PER_DAY
        return f"DATE '{_day(days)}'"
    if at.is_timestamp(kind):
        name = "TIMESTAMPTZ" if kind.tz else "TIMESTAMP_NS" if kind.unit == "ns" else "TIMESTAMP"
        day, rest = divmod(value.value, 86_400 * PER_SECOND[kind.unit])
        return f"{name} '{_day(day)} {_clock(rest, kind.unit)}{'+00' if kind.tz else ''}'"
    if at.is_time(kind):
        return f"TIME '{_clock(value.value, kind.unit)}'"
    if at.is_duration(kind):
        return _duration(value.value, kind.unit)
    if is_list(kind):
        return f"[{', '.join(map(literal, value))}]"
    if at.is_struct(kind):
        fields = (f"{string(name)}, {literal(item)}" for name, item in value.items())
        return f"named_struct({', '.join(fields)})"
    held = value.as_py()
    if isinstance(held, bytes):
        return "CAST('" + "".join(f"\\x{byte:02X}" for byte in held) + "' AS BLOB)"
    return string(held) if isinstance(held, str) else str(held)


def _floating(value: float, kind: pa.DataType) -> str:
    name = "DOUBLE" if at.is_float64(kind) else "FLOAT"
    if not math.isfinite(value):
        return f"CAST('{value}' AS {name})"
    value += 0.0  # -0.0 equals 0.0
    text = repr(value) if at.is_float64(kind) else str(np.float32(value))
    # Digits with a point parse as an exact decimal, which the column's type rounds back to this very value.
    return text if len(text) <= 18 and "e" not in text else f"CAST('{text}' AS {name})"


def _decimal(value: decimal.Decimal, kind: pa.DataType) -> str:
    return (
        f"{value:f}"
        if kind.precision <= 38
        else f"CAST('{value:f}' AS DECIMAL({kind.precision}, {kind.scale}))"
    )


def _day(days: int) -> str:
    try:
        return (datetime.date(1970, 1, 1) + datetime.timedelta(days=days)).isoformat()
    except OverflowError:
        # Beyond the calendar of Python: the count of days is at least unambiguous.
        return f"epoch {days:+d}"


def _clock(count: int, unit: str) -> str:
    seconds, fraction = divmod(count, PER_SECOND[unit])
    digits = len(str(PER_SECOND[unit])) - 1
    tail = f".{fraction:0{digits}d}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{tail}"


def _duration(count: int, unit: str) -> str:
    sign, count = ("-", -count) if count < 0 else ("", count)
    seconds, fraction = divmod(count, PER_SECOND[unit])
    digits = len(str(PER_SECOND[unit])) - 1
    return f"INTERVAL '{sign}{seconds}{f'.{fraction:0{digits}d}' if fraction else ''}' SECOND"
