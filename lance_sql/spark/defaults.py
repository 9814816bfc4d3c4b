"""Defaults of columns: SQL of Spark where Spark declares and uses them, SQL of sessions in the dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from lance_engine.base import load
from lance_engine.errors import InvalidArgumentError, LanceError
from pyspark.sql.types import StructField, StructType

from lance_sql.catalog.defaults import default_of, with_default

if TYPE_CHECKING:
    from sqlglot import exp

#: Metadata of Spark's fields: the default of new rows, as in NewTable.java,
_OF_NEW_ROWS: Final = "CURRENT_DEFAULT"
#: and the value in files without the column, which Spark requires next to it; datasets store every value.
_OF_OLD_ROWS: Final = "EXISTS_DEFAULT"

#: The parser's names of what means the same to Spark and to DuckDB. Division, concatenation of nulls and
#: rounding do not.
_ALIKE: Final = frozenset(
    {
        "Add", "Array", "Boolean", "Cast", "CurrentDate", "CurrentTimestamp", "DPipe", "DataType",
        "DataTypeParam", "Identifier", "Interval", "Literal", "Map", "Mul", "Neg", "Null", "Paren",
        "PropertyEQ", "Rand", "Struct", "Sub", "Uuid", "Var",
    }
)  # fmt: skip
#: Types of casts from texts on which they agree, and those to which a number with a fraction is not rounded.
_FROM_TEXT: Final = frozenset(
    {"DATE", "TEXT", "TIMESTAMP", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "TIMESTAMPTZ", "VARCHAR"}
)
_WITH_FRACTION: Final = frozenset({"DECIMAL", "DOUBLE", "FLOAT"})


def with_defaults(schema: pa.Schema, declared: StructType) -> pa.Schema:
    """The schema with the defaults that Spark declares for its columns."""
    fields = []
    for field, column in zip(schema, declared.fields, strict=True):
        text = (column.metadata or {}).get(_OF_NEW_ROWS)
        fields.append(
            field if text is None else with_default(field, default_for_sessions(text, field.name, field.type))
        )
    return pa.schema(fields, schema.metadata)


def default_for_sessions(text: str, column: str, kind: pa.DataType) -> str:
    """A default that Spark declares for a column of a type, as sessions write it."""
    return _translated(text, "spark", "duckdb", column, kind)


def with_stored_defaults(schema: StructType, stored: pa.Schema) -> StructType:
    """Spark's schema of a table, with the defaults for rows that Spark inserts."""
    return StructType([_with_stored(field, stored) for field in schema.fields])


def _with_stored(field: StructField, stored: pa.Schema) -> StructField:
    if field.name not in stored.names:
        return field
    try:
        known = stored.field(field.name)
        default = default_of(known)
        text = None if default is None else _translated(default, "duckdb", "spark", field.name, known.type)
    except LanceError as error:
        # Reads need no default, and a row must not get null in its place.
        message = str(error).replace("\\", "\\\\").replace("'", "\\'")
        text = f"raise_error('{message}')"
    if text is None:
        return field
    metadata = {**(field.metadata or {}), _OF_NEW_ROWS: text, _OF_OLD_ROWS: "NULL"}
    return StructField(field.name, field.dataType, field.nullable, metadata)


def _translated(text: str, written: str, wanted: str, column: str, kind: pa.DataType) -> str:
    load("sqlglot")
    from sqlglot import ErrorLevel, errors, exp, parse_one

    def strict(node: exp.Expression) -> exp.Expression:
        # The parser takes Spark's CAST for one that never fails, as it was before ANSI.
        return exp.Cast(this=node.this, to=node.args["to"]) if isinstance(node, exp.TryCast) else node

    refused: Exception | None = None
    try:
        tree = parse_one(text, dialect=written).transform(strict)
        if _means_the_same(tree, kind):
            return str(tree.sql(dialect=wanted, unsupported_level=ErrorLevel.RAISE, comments=False))
    except (errors.SqlglotError, RecursionError, ValueError) as error:
        refused = error
    raise InvalidArgumentError(
        f"The default {text} cannot be translated between Spark and DuckDB",
        column=column,
        remedy="Declare a constant, such as 5, 'text' or DATE '2024-01-01'",
    ) from refused


def _means_the_same(tree: exp.Expression, kind: pa.DataType) -> bool:
    """Whether both engines compute the same value of a column of a type."""
    from sqlglot import exp

    def has_fraction(node: exp.Expression) -> bool:
        numbers = (one for one in node.find_all(exp.Literal) if not one.is_string)
        return any(not str(number.this).isdigit() for number in numbers)

    for node in tree.walk():
        if type(node).__name__ not in _ALIKE:
            return False
        if isinstance(node, exp.Cast):
            to = node.to.this.name
            is_text = node.this.is_string
            if to not in _FROM_TEXT if is_text else (has_fraction(node.this) and to not in _WITH_FRACTION):
                return False
    return not (pa.types.is_integer(kind) and has_fraction(tree))
