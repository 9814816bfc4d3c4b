"""Constructors of normalized, typed nodes, which all filter parsers use.

Normalized means: constants have the type of the value they are compared with and are on the right; NOT only
occurs above predicates without an opposite; AND and OR are flat; constant parts are evaluated. Every rewrite
preserves three-valued logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine.arrow_values import array, scalar
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr import external, render
from lance_engine.expr.coerce import Place, place, read_text, round_to
from lance_engine.expr.convert import convert
from lance_engine.expr.evaluate import evaluate_constant
from lance_engine.expr.tree import (
    FLIPPED,
    OPPOSITE,
    And,
    Arithmetic,
    Cast,
    Column,
    Comparison,
    Function,
    In,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    flattened,
)
from lance_engine.expr.value_types import (
    common_type,
    decimal_for_integer,
    filtered_type,
    is_comparable,
    is_number,
    is_text,
    value_type,
)
from lance_engine.spelling import nearest

TRUE = Literal(scalar(True))
FALSE = Literal(scalar(False))
UNKNOWN = Literal(scalar(None, pa.bool_()))
#: The function of an engine that returns the groups of a match, or null.
_GROUPS_OF_MATCH = f"{external.PREFIX}regexp_match"


def column(schema: pa.Schema, parts: Sequence[str], *, exact: bool = True) -> Column:
    """The column, or field of a struct column, named by `parts`; ignores case unless `exact`."""
    fields: Iterable[pa.Field] = schema
    kind: pa.DataType | None = None
    names: list[str] = []
    for part in parts:
        available = {field.name: field for field in fields}
        name = part
        if name not in available and not exact:
            alike = [candidate for candidate in available if candidate.lower() == part.lower()]
            name = alike[0] if len(alike) == 1 else part
        if name not in available:
            raise _column_not_found([*names, part], names, list(available))
        names.append(name)
        kind = filtered_type(available[name])
        fields = [kind.field(index) for index in range(kind.num_fields)] if at.is_struct(kind) else ()
    return Column(tuple(names), kind)


def _column_not_found(
    parts: Sequence[str], parents: Sequence[str], available: Sequence[str]
) -> ColumnNotFoundError:
    name = ".".join(parts)
    near = nearest(parts[-1], available, cutoff=0.5)
    if near:
        remedy = f"Did you mean {'.'.join([*parents, near])!r}?"
    elif available:
        shown = ", ".join(available[:12]) + (", ..." if len(available) > 12 else "")
        remedy = f"Available: {shown}"
    else:
        remedy = f"{'.'.join(parents)!r} has no fields" if parents else "The dataset has no columns"
    return ColumnNotFoundError(f"Column {name!r} not found", remedy=remedy, column=name)


def always(operand: Node) -> Node:
    """True for every value of `operand`, null for null."""
    return Comparison("=", operand, operand)


def never(operand: Node) -> Node:
    """False for every value of `operand`, null for null."""
    return Comparison("<>", operand, operand)


def compare(op: str, left: Node, right: Node) -> Node:
    """``left op right`` for = <> < <= > >=, exact across types."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        left, right, op = right, left, FLIPPED[op]
    if isinstance(left, Literal) and isinstance(right, Literal):
        return _compare_constants(op, left, right)
    if not isinstance(right, Literal):
        return _compare_values(op, left, right)
    if right.is_null or at.is_null(left.type):
        return UNKNOWN
    if isinstance(left, Cast):
        right, left = Literal(_meant(right.value, left.type)), _unwrapped(left)
    _require_order(left)
    if at.is_decimal(left.type) and at.is_floating(right.type):
        left, right = cast(left, right.type), right
    stored = left.stored_type if isinstance(left, Column) else left.type
    where, value = place(right.value, stored)
    if where is Place.EXACT:
        return Comparison(op, left, Literal(value))
    if op in ("=", "<>"):
        return never(left) if op == "=" else always(left)
    if where is Place.BETWEEN:
        return Comparison("<=" if op in ("<", "<=") else ">", left, Literal(value))
    return always(left) if (op in ("<", "<=")) == (where is Place.ABOVE) else never(left)


def _compare_constants(op: str, left: Literal, right: Literal) -> Node:
    if left.is_null or right.is_null:
        return UNKNOWN
    if is_text(left.type) and not is_text(right.type):
        left, right, op = right, left, FLIPPED[op]
    probe = Column(("constant",), left.type)
    node = compare(op, probe, right)
    return evaluate_constant(substituted(node, probe, left))


def substituted(node: Node, column: Column, constant: Literal) -> Node:
    """A comparison with a constant, built over a stand-in column."""
    if node == column:
        return constant
    if isinstance(node, Comparison):
        left, right = (substituted(side, column, constant) for side in node.children)
        return Comparison(node.op, left, right, node.total)
    if isinstance(node, Cast):
        return Cast(substituted(node.operand, column, constant), node.target, node.lenient)
    return node


def _compare_values(op: str, left: Node, right: Node) -> Node:
    left, right = _unwrapped(left), _unwrapped(right)
    _require_order(left)
    _require_order(right)
    kind = common_type(left.type, right.type)
    if kind is None:
        raise InvalidFilterError(
            f"{left} ({render.type_name(left.type)}) cannot be compared with "
            f"{right} ({render.type_name(right.type)})",
            remedy="CAST one side",
        )
    if at.is_null(kind):
        return UNKNOWN
    if at.is_decimal(left.type) != at.is_decimal(right.type) and at.is_floating(kind):
        left, right = (_without_negative_zero(side, kind) for side in (left, right))
    return Comparison(op, cast(left, kind), cast(right, kind))


def _without_negative_zero(side: Node, kind: pa.DataType) -> Node:
    """`side` as a floating-point number; its zeros are equal to that of a decimal, which has no sign."""
    # There is no addition of half floats.
    if at.is_decimal(side.type) or at.is_float16(kind):
        return side
    return Arithmetic("+", cast(side, kind), Literal(scalar(0.0, kind)), kind)


def _require_order(node: Node) -> None:
    if not is_comparable(node.type) and not at.is_null(node.type):
        raise InvalidFilterError(
            f"{node} is of type {render.type_name(node.type)}, which filters cannot compare",
            remedy="Compare one of its fields, or use IS NULL"
            if at.is_struct(node.type)
            else "Only IS NULL is supported",
        )


def _meant(constant: pa.Scalar, kind: pa.DataType) -> pa.Scalar:
    """The meaning of a constant next to a value of type `kind`, before a cast to that type is removed."""
    if not constant.is_valid:
        return constant
    if is_text(constant.type) and not is_text(kind):
        constant = read_text(constant.as_py(), kind)
    if at.is_floating(kind) and is_number(constant.type) and not at.is_floating(constant.type):
        constant = round_to(float(constant.as_py()), kind)
    return constant


def _unwrapped(node: Node) -> Node:
    """`node` without lossless casts, so that the constant is converted instead of the column."""
    while isinstance(node, Cast) and not node.lenient and _keeps_every_value(node.operand.type, node.target):
        node = node.operand
    return node


def _keeps_every_value(source: pa.DataType, target: pa.DataType) -> bool:
    if source == target:
        return True
    if at.is_integer(source) and at.is_integer(target):
        return common_type(source, target) == target or (
            target.bit_width > source.bit_width and not at.is_unsigned_integer(target)
        )
    if at.is_integer(source) and at.is_decimal(target):
        return bool(target.precision - target.scale >= decimal_for_integer(source).precision)
    if at.is_integer(source) and at.is_floating(target):
        return bool(source.bit_width <= {64: 32, 32: 16}.get(target.bit_width, 0))
    if at.is_floating(source) and at.is_floating(target):
        return bool(target.bit_width >= source.bit_width)
    return bool(at.is_date(source) and at.is_timestamp(target) and target.unit != "ns")


def cast(operand: Node, target: pa.DataType, *, lenient: bool = False) -> Node:
    """``CAST(operand AS target)``; `operand` itself if it already has that type."""
    if operand.type == target:
        return operand
    try:
        convert(pa.array([], operand.type), target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidFilterError(
            f"{operand} is of type {render.type_name(operand.type)}, which cannot be cast to "
            f"{render.type_name(target)}",
            remedy="Cast to another type",
        ) from error
    node = folded(Cast(operand, target, lenient))
    # Values are checked where they are computed: they must not become infinite.
    return Cast(operand, target, lenient) if _is_infinite(node) and not _is_infinite(operand) else node


def _is_infinite(node: Node) -> bool:
    return isinstance(node, Literal) and at.is_floating(node.type) and pc.is_inf(node.value).as_py() is True


def member(operand: Node, values: pa.Array | Sequence[pa.Scalar]) -> Node:
    """``operand IN (values)`` for constants that compare with the operand; a null is NULL in the list."""
    if isinstance(operand, Literal):
        return disjunction(compare("=", operand, Literal(value)) for value in values)
    if at.is_null(operand.type):
        return UNKNOWN
    if isinstance(operand, Cast):
        values = [_meant(value, operand.type) for value in values]
        operand = _unwrapped(operand)
    _require_order(operand)
    if at.is_decimal(operand.type) and any(at.is_floating(value.type) for value in values):
        operand = cast(operand, pa.float64())
    if isinstance(values, pa.Array) and value_type(values.type) == operand.type:
        held = values if values.type == operand.type else pc.cast(values, operand.type)
        has_null = held.null_count > 0
        held = pc.unique(pc.drop_null(held))
    else:
        stored = operand.stored_type if isinstance(operand, Column) else operand.type
        has_null = any(not value.is_valid for value in values)
        places = [place(value, stored) for value in values if value.is_valid]
        exact = dict.fromkeys(value for where, value in places if where is Place.EXACT)
        held = array(list(exact), operand.type)
    if len(held) == 0:
        return disjunction([never(operand), UNKNOWN if has_null else FALSE])
    if len(held) == 1 and not has_null:
        return Comparison("=", operand, Literal(held[0]))
    return In(operand, held, has_null)


def is_null(operand: Node, *, negated: bool = False) -> Node:
    """``operand IS [NOT] NULL``."""
    if isinstance(operand, Literal):
        return TRUE if operand.is_null != negated else FALSE
    if isinstance(operand, Function) and operand.name == "coalesce":
        constants = [part for part in operand.arguments if isinstance(part, Literal)]
        if not all(constant.is_null for constant in constants):  # nothing that could fail needs computing
            return TRUE if negated else FALSE
    return IsNull(operand, negated)


def distinct(
    left: Node, right: Node, comparison: Callable[[str, Node, Node], Node] = compare, *, negated: bool = False
) -> Node:
    """``left IS [NOT] DISTINCT FROM right``: comparison in which NULL equals NULL and nothing is unknown."""
    if isinstance(left, Literal):
        left, right = right, left
    if isinstance(right, Literal) and right.is_null:
        return is_null(left, negated=not negated)
    if isinstance(right, Literal):
        same = conjunction([is_null(left, negated=True), comparison("=", left, right)])
    else:
        both_null = conjunction([is_null(left), is_null(right)])
        both_held = [is_null(left, negated=True), is_null(right, negated=True)]
        same = disjunction([both_null, conjunction([*both_held, comparison("=", left, right)])])
    return same if negated else negate(same)


def is_truth(operand: Node, truth: bool, *, negated: bool = False) -> Node:
    """``operand IS [NOT] TRUE`` or ``IS [NOT] FALSE``."""
    held = conjunction([is_null(operand, negated=True), operand if truth else negate(operand)])
    return negate(held) if negated else held


def require_boolean(node: Node) -> Node:
    """`node`, which must be a predicate."""
    if at.is_null(node.type) and isinstance(node, Literal):
        return UNKNOWN
    if isinstance(node, Function) and node.name == _GROUPS_OF_MATCH:
        return is_null(node, negated=True)  # the matched groups, if any
    if not at.is_boolean(node.type):
        raise InvalidFilterError(
            f"{node} is of type {render.type_name(node.type)}, not a condition",
            remedy=f"Compare it, for example {node} <> 0"
            if is_number(node.type)
            else "Compare it with a value",
        )
    return node


def conjunction(nodes: Iterable[Node]) -> Node:
    """AND of predicates: flat, without constants that have no effect."""
    operands = [node for node in flattened(And, map(require_boolean, nodes)) if node != TRUE]
    if FALSE in operands:
        return FALSE
    return And(tuple(operands)) if len(operands) > 1 else operands[0] if operands else TRUE


def disjunction(nodes: Iterable[Node]) -> Node:
    """OR of predicates: flat, without constants that have no effect."""
    operands = [node for node in flattened(Or, map(require_boolean, nodes)) if node != FALSE]
    if TRUE in operands:
        return TRUE
    return Or(tuple(operands)) if len(operands) > 1 else operands[0] if operands else FALSE


def negate(node: Node) -> Node:
    """NOT, pushed down; a comparison becomes its opposite, also for NaN, since NaN is ordered."""
    node = require_boolean(node)
    if isinstance(node, Comparison):
        return Comparison(OPPOSITE[node.op], node.left, node.right, node.total)
    if isinstance(node, IsNull):
        return IsNull(node.operand, not node.negated)
    if isinstance(node, And):
        return disjunction(map(negate, node.operands))
    if isinstance(node, Or):
        return conjunction(map(negate, node.operands))
    if isinstance(node, Not):
        return node.operand
    if isinstance(node, Literal):
        return node if node.is_null else FALSE if node == TRUE else TRUE
    return Not(node)


def folded(node: Node) -> Node:
    """`node`, or its value if it consists of constants."""
    return evaluate_constant(node) if all(isinstance(child, Literal) for child in node.children) else node
