"""Converts conditions that DuckDB offers to a scan to filter trees."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import array, scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import Column, Literal, Node, build, integer_scalar, python_scalar

from lance_sql.engines.duckdb.versions import BINARY, COLUMN, CONSTANT, IN, POSTFIX, UNARY, class_of
from lance_sql.types.kinds import KINDS

_COMPARISONS = {"=": "=", "!=": "<>", "<>": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}


def from_duckdb(node: Any, schema: pa.Schema) -> Node:
    """The predicate of a DuckDB node over the columns of `schema`, with DuckDB's semantics.

    Raises `InvalidFilterError` for an unsupported node or constant: decline such a predicate.
    """
    kind = class_of(node)
    if kind == BINARY and node.op in ("AND", "OR"):
        parts = [from_duckdb(part, schema) for part in _chain(node)]
        return build.conjunction(parts) if node.op == "AND" else build.disjunction(parts)
    if kind == UNARY and node.op == "NOT":
        return build.negate(from_duckdb(node.operand, schema))
    if kind == POSTFIX and node.op in ("IS NULL", "IS NOT NULL"):
        return build.is_null(_column(node.operand, schema), negated=node.op == "IS NOT NULL")
    if kind == IN:
        column = _column(node.operand, schema)
        values = _alike(node.values, column)
        return build.member(column, [_constant(value) for value in node.values] if values is None else values)
    if kind == BINARY and node.op in _COMPARISONS:
        return build.compare(
            _COMPARISONS[node.op], _column(node.left, schema), Literal(_constant(node.right))
        )
    raise InvalidFilterError(
        f"Filters do not support DuckDB's {kind} {getattr(node, 'op', '')}".rstrip(), remedy="Decline it"
    )


def _chain(node: Any) -> list[Any]:
    """The operands of a chain of the same ANDs or ORs, without recursion: chains can be thousands long."""
    chain, pending = [], [node]
    while pending:
        current = pending.pop()
        if class_of(current) == BINARY and current.op == node.op:
            pending += (current.right, current.left)
        else:
            chain.append(current)
    return chain


def _column(node: Any, schema: pa.Schema) -> Column:
    if class_of(node) != COLUMN:
        raise InvalidFilterError(
            "DuckDB compares an expression that is not a column", remedy="Decline the predicate"
        )
    return build.column(schema, list(node.parts))


def _alike(nodes: list[Any], column: Column) -> pa.Array | None:
    """Constants that the column stores as they are, integers or texts: lists may have thousands of them."""
    stored = column.stored_type
    kind = stored.value_type if at.is_dictionary(stored) else stored
    wanted: type | None = int if at.is_integer(kind) else str if at.is_string(kind) else None
    if wanted is None or any(class_of(node) != CONSTANT or type(node.value) is not wanted for node in nodes):
        return None
    try:
        return array([node.value for node in nodes], kind)
    except (pa.ArrowInvalid, OverflowError):  # some are beyond the range of the type
        return None


def _constant(node: Any) -> pa.Scalar:
    if class_of(node) != CONSTANT:
        raise InvalidFilterError(
            "DuckDB compares with an expression that is not a constant", remedy="Decline the predicate"
        )
    kind = KINDS[node.type].arrow if node.type in KINDS else None
    if kind == pa.timestamp("us", tz="UTC"):
        return integer_scalar(node.value, kind)
    if kind == pa.float32():
        return scalar(node.value, kind)
    return python_scalar(node.value)
