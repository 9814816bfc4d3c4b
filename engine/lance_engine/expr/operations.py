"""Making nodes that compute: string tests, arithmetic and functions over other nodes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build, external, nested, render
from lance_engine.expr.alike import alike, comparable, fitted
from lance_engine.expr.functions import ALIASES, KERNELS, OWN, TRIMMED, call
from lance_engine.expr.patterns import matching
from lance_engine.expr.tree import OPPOSITE, Cast, Column, Function, Literal, Node, rebuilt
from lance_engine.expr.value_types import decimal_type, is_nested, is_text


def match(kind: str, operand: Node, pattern: Node, *, escape: str | None = None) -> Node:
    """``operand [I]LIKE pattern``, ``starts_with(operand, pattern)`` and so on, with a constant pattern."""
    if not isinstance(pattern, Literal):
        if kind in ("starts_with", "ends_with", "contains") and external.is_provided():
            return _call(external.PREFIX + kind, [operand, pattern])
        raise InvalidFilterError(f"The pattern {pattern} is not a constant", remedy="Use a constant string")
    if pattern.is_null or (isinstance(operand, Literal) and operand.is_null):
        return build.UNKNOWN
    if not is_text(pattern.type) or not is_text(operand.type):
        wrong = operand if is_text(pattern.type) else pattern
        raise InvalidFilterError(
            f"{wrong} is of type {render.type_name(wrong.type)}, but {kind} needs strings",
            remedy=f"Write CAST({wrong} AS VARCHAR)",
        )
    return matching(kind, operand, pattern.value.as_py(), escape)


def compare(op: str, left: Node, right: Node) -> Node:
    """``left op right``, of lists and structs, too."""
    if not (is_nested(left.type) and is_nested(right.type)):
        return build.compare(op, left, right)
    if op in ("<>", ">", ">="):
        return build.negate(compare(OPPOSITE[op], left, right))
    # Constants take the type of a column, as in other comparisons.
    if isinstance(left, Column):
        right = fitted(right, left.type) or right
    elif isinstance(right, Column):
        left = fitted(left, right.type) or left
    return _call(nested.OPERATORS[op], alike([left, right]))


_ROUNDING = ("ceil", "floor", "round")


def sql_function(name: str, arguments: Sequence[Node]) -> Node:
    """A call of the SQL function `name`: one of ours or of pyarrow, or that of an engine."""
    name = ALIASES.get(name, name)
    if name == "concatenated":
        arguments = [_text_of(node) if at.is_floating(node.type) else node for node in arguments]
    typed = comparable(name, arguments)
    # For engines, 1.5 is a floating-point number.
    for_engine = [*map(_as_double, arguments)] if typed is arguments else typed
    kernel = KERNELS.get(name, name)
    if kernel in TRIMMED and len(arguments) <= 2:
        return _trimmed(TRIMMED[kernel], name, arguments)
    if kernel in _ROUNDING and arguments and at.is_decimal(arguments[0].type):
        typed = [_with_one_more_digit(arguments[0]), *arguments[1:]]
    if name in OWN or name in KERNELS:
        try:
            return _call(name, typed) if name in OWN else function(kernel, typed)
        except InvalidFilterError:
            with contextlib.suppress(LookupError, InvalidFilterError):  # the engine may take these arguments
                return _call(external.PREFIX + name, for_engine)
            raise
    try:
        return _call(external.PREFIX + name, for_engine)
    except LookupError:
        return function(name, typed)


def _trimmed(kernel: str, name: str, arguments: Sequence[Node]) -> Node:
    characters = arguments[1] if len(arguments) == 2 else Literal(pa.scalar(" "))
    if not isinstance(characters, Literal) or characters.is_null or not is_text(characters.type):
        raise InvalidFilterError(f"{name} needs a constant string of characters", remedy="Write 'xy'")
    options = pc.TrimOptions(characters.value.as_py()).serialize().to_pybytes()
    return function(kernel, arguments[:1], options)


def _text_of(number: Node) -> Node:
    """The text of a floating-point number as in SQL."""
    return sql_function("arrow_cast", [number, Literal(pa.scalar("Utf8"))])


def _with_one_more_digit(value: Node) -> Node:
    """A decimal whose type also holds it rounded up: pyarrow's kernels return 0 for what does not fit."""
    kind = value.type
    return build.cast(value, decimal_type(min(kind.precision + 1, 76), kind.scale))


def _call(name: str, arguments: Sequence[Node]) -> Node:
    probes = [
        argument.value if isinstance(argument, Literal) else pa.array([], argument.type)
        for argument in arguments
    ]
    try:
        kind = call(name, probes).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError) as error:
        raise _no_function(name.removeprefix(external.PREFIX), arguments, str(error)) from error
    return build.folded(Function(name, tuple(arguments), kind))


def with_official_casts(node: Node) -> Node:
    """`node` with the casts of the official implementation: it truncates decimals, and formats numbers
    and times in other ways than engines do.
    """

    def change(node: Node) -> Node:
        if not isinstance(node, Cast):
            return node
        kind = node.operand.type
        if at.is_integer(node.target) and (at.is_floating(kind) or at.is_decimal(kind)):
            operand = build.cast(node.operand, pa.float32()) if at.is_float16(kind) else node.operand
            return Cast(function("trunc", [operand]), node.target, node.lenient)
        changes = at.is_floating(kind) or at.is_timestamp(kind) or at.is_time(kind) or at.is_date64(kind)
        if changes and is_text(node.target) and not node.lenient and external.is_provided():
            return _text_of(node.operand)
        return node

    return rebuilt(node, change)


def _as_double(argument: Node) -> Node:
    if not isinstance(argument, Literal) or argument.is_null or not at.is_decimal(argument.type):
        return argument
    return Literal(pa.scalar(float(argument.value.as_py())))


def _no_function(name: str, arguments: Sequence[Node], why: str = "") -> InvalidFilterError:
    shown = ", ".join(render.type_name(argument.type) for argument in arguments)
    return InvalidFilterError(
        f"Unknown function {render.SQL_FUNCTIONS.get(name, name)}({shown}) for filters"
        + (f": {why}" if why else ""),
        remedy="Filter on columns, or use the function in the query instead of the scan",
    )


def function(name: str, arguments: Sequence[Node], options: bytes | None = None) -> Node:
    """A call of a scalar pyarrow compute function."""
    held = None if options is None else pc.FunctionOptions.deserialize(pa.py_buffer(options))
    try:
        # Functions over whole columns depend on the batch, functions of nothing on the call.
        if not arguments or pc.get_function(name).kind != "scalar":
            raise KeyError(name)
        kind = pc.call_function(name, [pa.array([], argument.type) for argument in arguments], held).type
    except (KeyError, pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise _no_function(name, arguments) from error
    return build.folded(Function(name, tuple(arguments), kind, options))
