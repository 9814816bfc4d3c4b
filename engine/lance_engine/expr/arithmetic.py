"""Making nodes of arithmetic."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build, render
from lance_engine.expr.coerce import round_to
from lance_engine.expr.decimal_division import quotient_type
from lance_engine.expr.tree import Arithmetic, Literal, Node
from lance_engine.expr.value_types import common_type, decimal_for_integer, is_number

_DIVISIONS = ("/", "//", "%")


def arithmetic(op: str, left: Node, right: Node) -> Node:
    """``left op right`` for + - * / // %; integers are computed in 64 bits, decimals exactly.

    ``/`` is computed in double precision: see `decimal_quotient`.
    """
    dates = at.is_date(left.type) and op in ("+", "-")
    if (dates and at.is_integer(right.type)) or (
        op == "+" and at.is_integer(left.type) and at.is_date(right.type)
    ):
        left, right = (left, right) if dates else (right, left)
        return build.folded(
            Arithmetic(op, build.cast(left, pa.date32()), build.cast(right, pa.int64()), pa.date32())
        )
    if dates and op == "-" and at.is_date(right.type):
        return build.folded(
            Arithmetic(op, build.cast(left, pa.date32()), build.cast(right, pa.date32()), pa.int64())
        )
    return _computed(op, *_arithmetic_operands(op, left, right))


def decimal_quotient(left: Node, right: Node) -> Node:
    """The quotient of two decimals, or of one and an integer, with four digits more than the dividend."""
    return _computed("/", *map(_as_decimal, (left, right)))


def _as_decimal(node: Node) -> Node:
    return build.cast(node, decimal_for_integer(node.type)) if at.is_integer(node.type) else node


def _computed(op: str, left: Node, right: Node) -> Node:
    if op in _DIVISIONS and at.is_decimal(left.type) and at.is_decimal(right.type):
        kind = quotient_type(op, left.type, right.type)
        return build.folded(Arithmetic(op, left, right, kind))
    try:
        kind = pc.call_function(_PROBES[op], [pa.array([], left.type), pa.array([], right.type)]).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidFilterError(
            f"{render.type_name(left.type)} {op} {render.type_name(right.type)} is not supported in a filter",
            remedy="CAST the operands to DOUBLE"
            if is_number(left.type)
            else "Compare the columns with constants",
        ) from error
    return build.folded(Arithmetic(op, left, right, kind))


_PROBES = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "divide", "%": "divide"}


def _arithmetic_operands(op: str, left: Node, right: Node) -> tuple[Node, Node]:
    if not (is_number(left.type) and is_number(right.type)):
        return left, right
    if op == "/":
        return build.cast(left, pa.float64()), build.cast(right, pa.float64())
    floating = [node.type for node in (left, right) if at.is_floating(node.type)]
    if floating:
        kind = max(floating, key=lambda kind: int(kind.bit_width))
        kind = pa.float32() if at.is_float16(kind) else kind
        return _as_floating(left, kind), _as_floating(right, kind)
    if at.is_integer(left.type) and at.is_integer(right.type):
        kind = common_type(left.type, right.type) if left.type != right.type else left.type
        if op in ("//", "%") and pa.uint64() in (left.type, right.type) and _is_natural(left, right):
            kind = pa.uint64()
        if not at.is_decimal(kind):
            kind = kind if kind == pa.uint64() else pa.int64()
            return build.cast(left, kind), build.cast(right, kind)
    sides = [_as_decimal(node) for node in (left, right)]
    first, second = sides[0].type, sides[1].type
    if op in _DIVISIONS:
        return sides[0], sides[1]
    if op == "*":
        precision = first.precision + second.precision + 1
    else:
        scale = max(first.scale, second.scale)
        precision = max(first.precision - first.scale, second.precision - second.scale) + scale + 1
    if precision > 38:
        # What does not fit 76 digits is an error where it occurs.
        most = max(75 - min(first.precision, second.precision), 37) if op == "*" else 75
        sides = [
            build.cast(node, pa.decimal256(min(node.type.precision, most), node.type.scale)) for node in sides
        ]
    return sides[0], sides[1]


def _is_natural(*nodes: Node) -> bool:
    """Whether no value is negative."""
    return all(
        node.type == pa.uint64()
        or (isinstance(node, Literal) and not node.is_null and node.value.as_py() >= 0)
        for node in nodes
    )


def _as_floating(node: Node, kind: pa.DataType) -> Node:
    if isinstance(node, Literal) and not node.is_null:
        return Literal(round_to(float(node.value.as_py()), kind))
    return build.cast(node, kind)
