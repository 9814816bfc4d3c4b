"""Conditions of a query that scans test as engines do, from its tree.

Patterns that kernels cannot test become others, which more strings match: such a condition is true of at
least the rows of which the engine's is true. Everything else is left to the engine: a condition that is not
understood completely has no meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.base import scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import Column, Literal, Node, build, implied, is_text, matching
from sqlglot import exp

if TYPE_CHECKING:
    from lance_sql.engines.base import Parameters
    from lance_sql.syntax.tree import Tree

_MATCHES: Final[Mapping[str, str]] = {
    "contains": "contains",
    "ends_with": "ends_with",
    "prefix": "starts_with",
    "starts_with": "starts_with",
    "suffix": "ends_with",
}
_OPERATORS: Final[Mapping[type, str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
_MOST_INTEGER: Final = (1 << 63) - 1


class _NotUnderstoodError(Exception):
    pass


def may_be_left(condition: exp.Expression) -> bool:
    """Whether the engine may not offer a condition to scans."""
    kinds = (exp.Or, exp.Like, exp.ILike, exp.Func)
    return condition.find(*kinds) is not None


def condition_of(
    node: Any,
    tree: Tree,
    columns: Callable[[Any], Column | None],
    parameters: Parameters,
    *,
    backslash_escapes: bool,
) -> Node | None:
    """The condition that a part of a tree is; None if any part of it is not understood.

    `columns` returns the column that a node refers to. `backslash_escapes`: in strings, a backslash may have
    a meaning without ESCAPE; functions may be redefined.
    """
    reader = _Reader(tree, columns, parameters, backslash_escapes)
    try:
        return reader.condition(node, exact=False)
    except (_NotUnderstoodError, InvalidFilterError, RecursionError):
        return None


class _Reader:
    def __init__(
        self,
        tree: Tree,
        columns: Callable[[Any], Column | None],
        parameters: Parameters,
        backslash_escapes: bool,
    ) -> None:
        self._tree = tree
        self._columns = columns
        self._parameters = parameters
        self._backslash_escapes = backslash_escapes

    def condition(self, node: Any, *, exact: bool) -> Node:
        """What a node means; `exact`: it must not be true of more rows, because it is negated."""
        match node:
            case exp.Paren():
                return self.condition(node.this, exact=exact)
            case exp.And():
                return build.conjunction([self.condition(side, exact=exact) for side in node.flatten()])
            case exp.Or():
                return build.disjunction([self.condition(side, exact=exact) for side in node.flatten()])
            case exp.Not():
                return build.negate(self.condition(node.this, exact=True))
            case exp.Escape(this=exp.Like() | exp.ILike()):
                return self._like(node.this, exact, node.expression)
            case exp.Like() | exp.ILike():
                return self._like(node, exact)
            case exp.Is(expression=exp.Null()):
                return build.is_null(self._column(node.this))
            case exp.In():
                return self._member(node)
            case exp.Between():
                return self._between(node)
            case exp.Func():
                return self._call(node)
        op = _OPERATORS.get(type(node))
        if op is None:
            raise _NotUnderstoodError
        column = self._column(node.this)
        if is_text(column.type) and op not in ("=", "<>"):
            raise _NotUnderstoodError
        return build.compare(op, column, self._constant(node.expression, column))

    def _call(self, node: exp.Func) -> Node:
        kind = _MATCHES.get(self._tree.written(node))
        arguments = list(node.iter_expressions())
        if self._backslash_escapes or kind is None or len(arguments) != 2:
            raise _NotUnderstoodError
        return matching(kind, _text(self._column(arguments[0])), self._string(arguments[1]))

    def _like(self, node: Any, exact: bool, escape: Any = None) -> Node:
        _only(node, "this", "expression", "negate")
        kind = "like" if isinstance(node, exp.Like) else "ilike"
        column, pattern = _text(self._column(node.this)), self._string(node.expression)
        sign = None if escape is None else self._string(escape)
        if sign is not None and (len(sign) != 1 or not sign.isascii() or pattern.endswith(sign)):
            raise _NotUnderstoodError
        if sign is not None and self._backslash_escapes:
            raise _NotUnderstoodError
        if node.args.get("negate"):
            return build.negate(_exact(kind, column, pattern, sign))
        return _exact(kind, column, pattern, sign) if exact else implied(kind, column, pattern, sign)

    def _member(self, node: exp.In) -> Node:
        _only(node, "this", "expressions")
        column = self._column(node.this)
        values = [self._constant(value, column) for value in node.expressions]
        if not values:
            raise _NotUnderstoodError
        return build.member(column, [value.value for value in values])

    def _between(self, node: exp.Between) -> Node:
        _only(node, "this", "low", "high")
        column = self._column(node.this)
        if not at.is_integer(column.type):
            raise _NotUnderstoodError
        low, high = (self._constant(node.args[end], column) for end in ("low", "high"))
        return build.conjunction([build.compare(">=", column, low), build.compare("<=", column, high)])

    def _constant(self, node: Any, column: Column) -> Literal:
        """A constant of the type of the column: a whole number or a string."""
        if is_text(column.type):
            return Literal(scalar(self._string(node)))
        if not at.is_integer(column.type):
            raise _NotUnderstoodError
        value = self._value(node)
        if type(value) is not int or abs(value) > _MOST_INTEGER:
            raise _NotUnderstoodError
        return Literal(scalar(value, pa.int64()))

    def _string(self, node: Any) -> str:
        value = self._value(node)
        if type(value) is not str or (self._backslash_escapes and "\\" in value):
            raise _NotUnderstoodError
        return value

    def _value(self, node: Any) -> Any:
        """The value of a string, a whole number or a parameter; None for others."""
        if isinstance(node, exp.Neg):
            value = self._value(node.this)
            return -value if type(value) is int and isinstance(node.this, exp.Literal) else None
        if isinstance(node, exp.Literal):
            if node.is_string:
                return str(node.this)
            return int(node.this) if str(node.this).isdecimal() else None
        return parameter_value(node, self._parameters) if isinstance(node, exp.Placeholder) else None

    def _column(self, node: Any) -> Column:
        column = self._columns(node)
        if column is None:
            raise _NotUnderstoodError
        return column


def parameter_value(node: exp.Placeholder, parameters: Parameters) -> Any:
    """The value of ``$1`` or ``$name``; None if unknown."""
    name = str(node.this)
    if isinstance(parameters, Mapping):
        return parameters.get(name)
    if not isinstance(parameters, Sequence) or not name.isdecimal() or not 0 < int(name) <= len(parameters):
        return None
    return parameters[int(name) - 1]


def _exact(kind: str, column: Column, pattern: str, escape: str | None) -> Node:
    if kind != "like":
        raise _NotUnderstoodError
    return matching(kind, column, pattern, escape)


def _only(node: exp.Expression, *names: str) -> None:
    """_NotUnderstoodError if a node has anything but these parts."""
    if any(value for name, value in node.args.items() if name not in names):
        raise _NotUnderstoodError


def _text(column: Column) -> Column:
    if not is_text(column.type):
        raise _NotUnderstoodError
    return column
