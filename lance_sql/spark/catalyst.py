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

from lance_sql.spark.versions import (
    AND,
    COLUMN,
    COMPARISONS,
    FIELD,
    IN,
    IN_SET,
    LITERAL,
    MATCHES,
    NOT,
    NULL_TESTS,
    OR,
    class_name,
    has_collation,
    scala_items,
)

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


def _conjuncts(condition: Any) -> Iterable[Any]:
    if class_name(condition) == AND:
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _exact(expression: Any, schema: pa.Schema) -> Node:
    """A filter that selects exactly the rows that Spark's expression selects."""
    name = class_name(expression)
    if name == AND:
        return build.conjunction([_exact(side, schema) for side in scala_items(expression.children())])
    if name == OR:
        return build.disjunction([_exact(side, schema) for side in scala_items(expression.children())])
    if name == NOT:
        return build.negate(_exact(expression.child(), schema))
    return spark_filter(_filter(name, expression), schema)


def _filter(name: str, expression: Any) -> SparkFilter:
    if name in NULL_TESTS:
        return SparkFilter(name, _column(expression.child()))
    if name in COMPARISONS:
        left, right = expression.left(), expression.right()
        if class_name(left) == LITERAL:
            return SparkFilter(COMPARISONS[name], _column(right), _literal(left))
        return SparkFilter(name, _column(left), _literal(right))
    if name in MATCHES:
        return SparkFilter(MATCHES[name], _column(expression.left()), _literal(expression.right()))
    if name == IN:
        values = tuple(_literal(item) for item in scala_items(expression.list()))
        return SparkFilter(name, _column(expression.value()), values)
    if name == IN_SET:
        convert = _converter(expression.child())
        held = (None if value is None else convert(value) for value in scala_items(expression.hset()))
        return SparkFilter("In", _column(expression.child()), tuple(held))
    raise _UnknownError(name)


def _column(expression: Any) -> tuple[str, ...]:
    name = class_name(expression)
    if name == COLUMN:
        if has_collation(expression):
            raise _UnknownError("A collation")
        return (str(expression.name()),)
    if name == FIELD:
        return (*_column(expression.child()), str(expression.extractFieldName()))
    raise _UnknownError(name)


def _literal(expression: Any) -> object:
    if class_name(expression) != LITERAL:
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
