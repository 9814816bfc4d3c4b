"""The filter tree: small, typed, immutable, hashable, picklable nodes; ``str(node)`` is SQL.

A tree is bound to a schema: every node knows the Arrow type of its values, and a constant that is compared
with a column has that column's value type (see `lance_engine.expr.build`, whose functions make normalised
nodes). Predicates are nodes of boolean type, with SQL's three-valued logic.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine.expr import render
from lance_engine.expr.value_types import value_type

#: Operators of `Comparison`, each with its opposite.
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
#: Operators of `Comparison`, each with the one to use when the sides are exchanged.
FLIPPED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Node:
    """Any node. `type` is the Arrow type of its values, `children` are the nodes it is computed from."""

    __slots__ = ()

    @property
    def type(self) -> pa.DataType:
        return pa.bool_()

    @property
    def children(self) -> tuple[Node, ...]:
        return ()

    def __str__(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Column(Node):
    """A column, or a field inside a struct column: ``parts`` is the column's name followed by field names."""

    parts: tuple[str, ...]
    stored_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        """The type of the values, without dictionary, extension or view encoding."""
        return value_type(self.stored_type)

    def __str__(self) -> str:
        return ".".join(render.identifier(part) for part in self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """A constant; ``value`` may be null. NaN equals NaN here, so that equal trees compare equal."""

    value: pa.Scalar

    @property
    def type(self) -> pa.DataType:
        return self.value.type

    @property
    def is_null(self) -> bool:
        return not self.value.is_valid

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and self.value.type == other.value.type
            and (bool(self.value.equals(other.value)) or str(self) == str(other))
        )

    def __hash__(self) -> int:
        return hash((self.value.type, str(self)))

    def __reduce__(self) -> tuple[object, ...]:
        return _literal_of, (pa.repeat(self.value, 1),)

    def __str__(self) -> str:
        return render.literal(self.value)


def _literal_of(array: pa.Array) -> Literal:
    return Literal(array[0])


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """``left op right`` for = <> < <= > >=, both sides of the same type.

    NaN is the largest value, unless `total`: see `lance_engine.expr.total_order`.
    """

    op: str
    left: Node
    right: Node
    total: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        return f"{_operand(self.left)} {self.op} {_operand(self.right)}"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class In(Node):
    """``operand IN (values)``: distinct, non-null values of the operand's type; ``has_null`` adds NULL.

    `total` as for `Comparison`.
    """

    operand: Node
    values: pa.Array
    has_null: bool = False
    total: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, In)
            and self.operand == other.operand
            and (self.has_null, self.total) == (other.has_null, other.total)
            and self.values.type == other.values.type
            and (bool(self.values.equals(other.values)) or self.list_text() == other.list_text())
        )

    def __hash__(self) -> int:
        head = self.values.slice(0, 8)
        return hash((self.operand, len(self.values), self.has_null, tuple(map(render.literal, head))))

    def list_text(self) -> str:
        plain = at.is_integer(self.values.type)  # written as in Python
        items = list(map(str, self.values.to_pylist())) if plain else list(map(render.literal, self.values))
        return f"({', '.join([*items, 'NULL'] if self.has_null else items)})"

    def __str__(self) -> str:
        return f"{_operand(self.operand)} IN {self.list_text()}"


@dataclass(frozen=True, slots=True, eq=False)
class SummarizedIn(In):
    """Membership in a long list, of which the text form only has the summary; equal only to itself."""

    summary: str = ""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def list_text(self) -> str:
        return f"({self.summary})"


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """``operand IS NULL``, or ``IS NOT NULL`` when negated; never null itself."""

    operand: Node
    negated: bool = False

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{_operand(self.operand)} IS {'NOT ' if self.negated else ''}NULL"


@dataclass(frozen=True, slots=True)
class And(Node):
    """Conjunction of two or more predicates."""

    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def __str__(self) -> str:
        return " AND ".join(f"({node})" if isinstance(node, Or) else str(node) for node in self.operands)


@dataclass(frozen=True, slots=True)
class Or(Node):
    """Disjunction of two or more predicates."""

    operands: tuple[Node, ...]

    @property
    def children(self) -> tuple[Node, ...]:
        return self.operands

    def __str__(self) -> str:
        return " OR ".join(f"({node})" if isinstance(node, And) else str(node) for node in self.operands)


@dataclass(frozen=True, slots=True)
class Not(Node):
    """Negation of a predicate that has no opposite (IN, LIKE, boolean columns, functions)."""

    operand: Node

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        if isinstance(self.operand, In):
            return f"{_operand(self.operand.operand)} NOT IN {self.operand.list_text()}"
        return f"NOT {_operand(self.operand)}"


@dataclass(frozen=True, slots=True)
class Match(Node):
    """A test of a string: ``kind`` is starts_with, ends_with, contains, like or ilike.

    A like or ilike pattern has ``%`` for any characters, ``_`` for one, and a backslash before a character
    meant literally.
    """

    kind: str
    operand: Node
    pattern: str

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        text = render.string(self.pattern)
        if self.kind in ("like", "ilike"):
            escape = " ESCAPE '\\'" if "\\" in self.pattern else ""
            return f"{_operand(self.operand)} {self.kind.upper()} {text}{escape}"
        return f"{self.kind}({self.operand}, {text})"


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """``left op right`` for + - * / // %; / is in floating point, // and % truncate, null for divisor 0."""

    op: str
    left: Node
    right: Node
    result_type: pa.DataType

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def __str__(self) -> str:
        sides = (f"({side})" if isinstance(side, Arithmetic) else _operand(side) for side in self.children)
        return f" {self.op} ".join(sides)


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """``CAST(operand AS target)``; a value that does not fit is an error, or null when lenient (TRY_CAST)."""

    operand: Node
    target: pa.DataType
    lenient: bool = False

    @property
    def type(self) -> pa.DataType:
        return self.target

    @property
    def children(self) -> tuple[Node, ...]:
        return (self.operand,)

    def __str__(self) -> str:
        return f"{'TRY_' if self.lenient else ''}CAST({self.operand} AS {render.type_name(self.target)})"


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A call of the pyarrow compute function ``name``; ``options`` are its serialized `FunctionOptions`."""

    name: str
    arguments: tuple[Node, ...]
    result_type: pa.DataType
    options: bytes | None = None

    @property
    def type(self) -> pa.DataType:
        return self.result_type

    @property
    def children(self) -> tuple[Node, ...]:
        return self.arguments

    def __str__(self) -> str:
        if self.name in render.OPERATORS:
            return f" {render.OPERATORS[self.name]} ".join(map(_operand, self.arguments))
        name = render.SQL_FUNCTIONS.get(self.name, self.name)
        shown = [*map(str, self.arguments)]
        if self.options is not None:
            shown.append(str(pc.FunctionOptions.deserialize(pa.py_buffer(self.options))))
        return f"{name}({', '.join(shown)})"


def _operand(node: Node) -> str:
    """The text of `node` as an operand of something that binds tighter than any predicate."""
    is_call = isinstance(node, Function) and node.name not in render.OPERATORS
    return str(node) if is_call or isinstance(node, (Column, Literal, Cast, Arithmetic)) else f"({node})"


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Node:
    """`node` after `change` of everything below it, and then of itself."""
    changes: dict[str, object] = {}
    for field in dataclasses.fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if isinstance(value, Node):
            changes[field.name] = rebuilt(value, change)
        elif isinstance(value, tuple) and any(isinstance(item, Node) for item in value):
            changes[field.name] = tuple(rebuilt(item, change) for item in value)
    return change(dataclasses.replace(node, **changes) if changes else node)  # type: ignore[type-var]


def walk(node: Node) -> Iterator[Node]:
    """`node` and everything below it, parents first."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(current.children))


def columns_of(node: Node) -> set[str]:
    """The names of the top-level columns that `node` reads."""
    return {child.parts[0] for child in walk(node) if isinstance(child, Column)}


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The predicates that must all be true for `node` to be true."""
    return node.operands if isinstance(node, And) else (node,)


def flattened(kind: type[And] | type[Or], nodes: Iterable[Node]) -> list[Node]:
    """The operands of `nodes` with nested nodes of the same kind opened and repetitions dropped, in order."""
    flattened: dict[Node, None] = {}
    for node in nodes:
        if isinstance(node, (And, Or)) and isinstance(node, kind):
            flattened.update(dict.fromkeys(node.operands))
        else:
            flattened[node] = None
    return list(flattened)
