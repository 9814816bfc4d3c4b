"""Converts Spark's data source filters (``pyspark.sql.datasource``) to a filter tree, by class name.

Spark pushes `EqualTo`, `EqualNullSafe`, `GreaterThan`, `GreaterThanOrEqual`, `LessThan`, `LessThanOrEqual`,
`In`, `IsNull`, `IsNotNull`, `StringStartsWith`, `StringEndsWith`, `StringContains` and `Not` of these, each
over one column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build, operations
from lance_engine.expr.constants import python_scalar
from lance_engine.expr.tree import Column, Literal, Node

_COMPARISONS = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_MATCHES = {
    "StringStartsWith": "starts_with",
    "StringEndsWith": "ends_with",
    "StringContains": "contains",
}


@dataclass(frozen=True, slots=True)
class SparkFilter:
    """A filter over one column, for code that only has the name of Spark's class."""

    kind: str
    attribute: tuple[str, ...]
    value: object = None


def from_spark(filter: Any, schema: pa.Schema) -> Node:
    """The predicate of a Spark filter over the columns of `schema`, with Spark's semantics.

    Raises `InvalidFilterError` for filters that Spark must evaluate: unknown ones, and those on columns with
    nanoseconds, which Spark rounds to microseconds.
    """
    name = filter.kind if isinstance(filter, SparkFilter) else type(filter).__name__
    if name == "Not":
        return build.negate(from_spark(filter.child, schema))
    attribute = getattr(filter, "attribute", None)
    if attribute is None:
        raise InvalidFilterError(f"{name} is not a filter on a column", remedy="Leave it to Spark")
    column = build.column(schema, list(attribute))
    _require_exact(column)
    if name == "IsNull":
        return build.is_null(column)
    if name == "IsNotNull":
        return build.is_null(column, negated=True)
    if name == "In":
        return build.member(column, [python_scalar(value) for value in filter.value])
    if name in _COMPARISONS:
        return build.compare(_COMPARISONS[name], column, Literal(python_scalar(filter.value)))
    if name == "EqualNullSafe":
        return build.distinct(column, Literal(python_scalar(filter.value)), negated=True)
    if name in _MATCHES:
        return operations.match(_MATCHES[name], column, Literal(python_scalar(filter.value)))
    raise InvalidFilterError(f"Filters do not support Spark's {name}", remedy="Leave it to Spark")


def _require_exact(column: Column) -> None:
    kind = column.type
    if (at.is_timestamp(kind) or at.is_duration(kind)) and kind.unit == "ns":
        raise InvalidFilterError(f"Spark reads {column} in microseconds", remedy="Leave the filter to Spark")
