"""Default values of columns: SQL text in a dataset, so only constants and functions that read nothing."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance_engine.base import load
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.text.tokens import as_name

if TYPE_CHECKING:
    from sqlglot import exp

#: Field metadata key for the SQL expression of the default value.
DEFAULT_KEY = b"lance-sql:default"

#: The parser's names of what a default may consist of: literals, their combinations, and types.
_PARTS: Final = frozenset(
    {
        "Add", "Array", "Boolean", "Cast", "Concat", "DPipe", "DataType", "DataTypeParam", "Div", "IntDiv",
        "Interval", "Literal", "Map", "Mod", "Mul", "Neg", "Null", "Paren", "Pow", "Struct", "Sub", "Trunc",
        "Tuple",
    }
)  # fmt: skip
#: The parser's names of functions of the time and of random values.
_CALLS: Final = frozenset(
    {
        "CurrentDate", "CurrentTime", "CurrentTimestamp", "Localtime", "Localtimestamp", "Rand",
        "TimestampTrunc", "ToDays", "Uuid",
    }
)  # fmt: skip
#: Functions that it does not know.
_OTHER_CALLS: Final = frozenset(
    {
        "array_value", "current_localtime", "get_current_time", "get_current_timestamp", "now", "row",
        "to_centuries", "to_decades", "to_hours", "to_microseconds", "to_millennia", "to_milliseconds",
        "to_minutes", "to_months", "to_quarters", "to_seconds", "to_weeks", "to_years",
        "transaction_timestamp", "uuidv4", "uuidv7",
    }
)  # fmt: skip
_NUMBER: Final = re.compile(r"[0-9_]*\.?[0-9_]*(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"\w+")
#: Characters of a default; longer ones would only keep the parser busy.
_LONGEST: Final = 10_000

_ALLOWED = "Constants and now(), current_date, current_time, uuid(), random() and such are supported"


def default_of(field: pa.Field) -> str | None:
    """The SQL expression of the default value; None stands for null.

    It is written from its syntax tree: nothing else in the text of a dataset reaches an engine.
    UnsupportedFeatureError for a default that could read something.
    """
    stored = (field.metadata or {}).get(DEFAULT_KEY)
    if stored is None:
        return None
    text = stored.decode(errors="replace")
    safe = _constant(text)
    if safe is None:
        raise UnsupportedFeatureError(
            f"The stored default is neither a constant nor a function such as now(), "
            f"and is never executed: {_shortened(text)}",
            column=field.name,
            remedy="Give the column a value in the statement, or remove the default: "
            f"ALTER TABLE t ALTER COLUMN {as_name(field.name)} DROP DEFAULT",
        )
    return safe


def with_default(field: pa.Field, expression: str | None) -> pa.Field:
    """The field with another default; UnsupportedFeatureError for one that datasets do not store."""
    metadata = dict(field.metadata or {})
    metadata.pop(DEFAULT_KEY, None)
    if expression is not None:
        if _constant(expression) is None:
            raise UnsupportedFeatureError(
                f"A default must be a constant, not {_shortened(expression)}",
                column=field.name,
                remedy=f"{_ALLOWED}. Compute other values in INSERT",
            )
        metadata[DEFAULT_KEY] = expression.encode()
    return field.with_metadata(metadata or None)


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."


@functools.lru_cache(maxsize=1024)
def _constant(text: str) -> str | None:
    """The expression as written from its tree, None if it may be anything but a constant."""
    load("sqlglot")
    from sqlglot import errors, parse

    if len(text) > _LONGEST:
        return None
    try:
        trees = parse(text, dialect="duckdb")
        if len(trees) != 1 or trees[0] is None or not all(map(_is_allowed, trees[0].walk())):
            return None
        return str(trees[0].sql(dialect="duckdb", comments=False))
    except (errors.SqlglotError, RecursionError, ValueError):
        return None


def _is_allowed(node: exp.Expression) -> bool:
    from sqlglot import exp

    name = type(node).__name__
    match node:
        case exp.Literal():
            return node.is_string or _NUMBER.fullmatch(node.name) is not None
        case exp.Anonymous():
            return node.name.lower() in _OTHER_CALLS
        case exp.DataType():
            return node.this not in (exp.DataType.Type.USERDEFINED, exp.DataType.Type.UNKNOWN)
        case exp.PropertyEQ() | exp.ColumnDef():
            return True  # a field of a struct and its value or type
        case exp.Identifier():
            named = isinstance(node.parent, exp.Anonymous | exp.ColumnDef | exp.PropertyEQ)
            return named and _WORD.fullmatch(node.name) is not None
        case exp.Var():
            unit = isinstance(node.parent, exp.Interval | exp.TimestampTrunc)
            return unit and _WORD.fullmatch(node.name) is not None
    return name in _PARTS or name in _CALLS
