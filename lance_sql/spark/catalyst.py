"""Converts conditions of Spark's optimized plans to Lance filters.

The expressions are JVM objects, identified by class name. Unknown ones are left to Spark, which tests every
condition itself anyway: the result may include more rows, never fewer.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from lance_engine.errors import LanceError
from lance_engine.expr import Node, SparkFilter, build, spark_filter

_COMPARISONS: Final[Mapping[str, tuple[str, str]]] = {
    # The operator, and the one with swapped operands.
    "EqualTo": ("EqualTo", "EqualTo"),
    "EqualNullSafe": ("EqualNullSafe", "EqualNullSafe"),
    "GreaterThan": ("GreaterThan", "LessThan"),
    "GreaterThanOrEqual": ("GreaterThanOrEqual", "LessThanOrEqual"),
    "LessThan": ("LessThan", "GreaterThan"),
    "LessThanOrEqual": ("LessThanOrEqual", "GreaterThanOrEqual"),
}
_MATCHES: Final[Mapping[str, str]] = {
    "StartsWith": "StringStartsWith",
    "EndsWith": "StringEndsWith",
    "Contains": "StringContains",
}
_TESTS: Final = frozenset({"IsNull", "IsNotNull"})
_EPOCH: Final = datetime.datetime(1970, 1, 1)


class _UnknownError(Exception):
    """An expression that is left to Spark."""


def to_filter(condition: Any, schema: pa.Schema) -> Node | None:
    """A filter that is true for every row that meets the condition; None if there is no such filter.

    `condition` is a Catalyst expression over the columns of `schema`.
    """
    parts = []
    for part in _conjuncts(condition):
        try:
            parts.append(_exact(part, schema))
        except (_UnknownError, LanceError, pa.ArrowException):
            continue
    return build.conjunction(parts) if parts else None


def scala_items(items: Any) -> Iterable[Any]:
    """The elements of a Scala collection."""
    iterator = items.iterator()
    while iterator.hasNext():
        yield iterator.next()


def class_name(thing: Any) -> str:
    """The simple name of the class of a JVM object."""
    return str(thing.getClass().getSimpleName())


def _conjuncts(condition: Any) -> Iterable[Any]:
    if class_name(condition) == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _exact(expression: Any, schema: pa.Schema) -> Node:
    """A filter that selects exactly the rows that Spark's expression selects."""
    name = class_name(expression)
    if name == "And":
        return build.conjunction([_exact(side, schema) for side in scala_items(expression.children())])
    if name == "Or":
        return build.disjunction([_exact(side, schema) for side in scala_items(expression.children())])
    if name == "Not":
        return build.negate(_exact(expression.child(), schema))
    return spark_filter(_filter(name, expression), schema)


def _filter(name: str, expression: Any) -> SparkFilter:
    if name in _TESTS:
        return SparkFilter(name, _column(expression.child()))
    if name in _COMPARISONS:
        plain, exchanged = _COMPARISONS[name]
        left, right = expression.left(), expression.right()
        if class_name(left) == "Literal":
            return SparkFilter(exchanged, _column(right), _literal(left))
        return SparkFilter(plain, _column(left), _literal(right))
    if name in _MATCHES:
        return SparkFilter(_MATCHES[name], _column(expression.left()), _literal(expression.right()))
    if name == "In":
        values = tuple(_literal(item) for item in scala_items(expression.list()))
        return SparkFilter(name, _column(expression.value()), values)
    if name == "InSet":
        convert = _converter(expression.child())
        held = (None if value is None else convert(value) for value in scala_items(expression.hset()))
        return SparkFilter("In", _column(expression.child()), tuple(held))
    raise _UnknownError(name)


def _column(expression: Any) -> tuple[str, ...]:
    name = class_name(expression)
    if name == "AttributeReference":
        if not _is_comparable(expression):
            raise _UnknownError("A collation")
        return (str(expression.name()),)
    if name == "GetStructField":
        return (*_column(expression.child()), str(expression.extractFieldName()))
    raise _UnknownError(name)


def _is_comparable(expression: Any) -> bool:
    """Strings may have a collation, which determines equality."""
    kind = str(expression.dataType().sql())
    return not kind.startswith("STRING ")


def _literal(expression: Any) -> object:
    if class_name(expression) != "Literal":
        raise _UnknownError(class_name(expression))
    value = expression.value()
    return None if value is None else _converter(expression)(value)


def _converter(expression: Any) -> Callable[[Any], object]:
    kind = str(expression.dataType().typeName()).partition("(")[0]
    convert = _VALUES.get(kind)
    if convert is None:
        raise _UnknownError(kind)
    return convert


def _moment(microseconds: int) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(microseconds=microseconds)


_VALUES: Final[Mapping[str, Callable[[Any], object]]] = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "decimal": lambda value: Decimal(value.toString()),
    "string": lambda value: str(value.toString()),
    "binary": bytes,
    "date": lambda days: _moment(0).date() + datetime.timedelta(days=days),
    "timestamp": lambda microseconds: _moment(microseconds).replace(tzinfo=datetime.UTC),
    "timestamp_ntz": _moment,
}
