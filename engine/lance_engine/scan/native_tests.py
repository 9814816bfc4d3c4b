"""Conditions that the kernels test while decoding, so that the values never become arrays.

These are comparisons of a top-level column with constants and lists of constants, and text searches. Strings
are tested in their encoded form if possible: once per dictionary entry, or symbol by symbol.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from lance_engine import kernels
from lance_engine.arrow_values import array
from lance_engine.expr.build import conjunction, disjunction, negate
from lance_engine.expr.patterns import has_only_ascii_cases
from lance_engine.expr.tree import (
    And,
    Column,
    Comparison,
    In,
    Literal,
    Match,
    Node,
    Not,
    Or,
)
from lance_engine.expr.value_types import is_bytes, is_text
from lance_engine.scan.projection import Projection
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.system import SYSTEM_FIELDS

# With more tests, their columns would be read too often.
_MOST_TESTS = 4
# The automaton of a test has a state for every byte of its text.
_LONGEST_TEXT = 240
_RANGES = ("=", "<", "<=", ">", ">=")


@dataclass(slots=True, eq=False, weakref_slot=True)
class NativeTests:
    """A condition over columns of truth values, and the tests that give these."""

    node: Node
    tests: dict[str, tuple[str, kernels.ValueTest]]
    """By the name of such a column: the column that is tested, and how."""

    def projection(self, reader: RowsReader) -> Projection | None:
        """A reader for the truth values; None if the columns are missing or cannot be tested."""
        return reader.tests(self, self.tests)


def native_tests(nodes: Sequence[Node]) -> NativeTests | None:
    """All of some conditions as tests of the kernels, or None."""
    compiler = _Compiler()
    node = compiler.conjunction(nodes)
    if node is None or not 0 < len(compiler.tests) <= _MOST_TESTS:
        return None
    return NativeTests(node, compiler.tests)


class _Compiler:
    def __init__(self) -> None:
        self.tests: dict[str, tuple[str, kernels.ValueTest]] = {}

    def conjunction(self, nodes: Sequence[Node]) -> Node | None:
        """Conditions that must all be true; those that bound the same column become one range."""
        bounds: dict[Column, list[Comparison]] = {}
        compiled: list[Node | None] = []
        for node in nodes:
            if isinstance(node, Comparison) and node.op in _RANGES and _is_number(node):
                assert isinstance(node.left, Column)
                bounds.setdefault(node.left, []).append(node)
            else:
                compiled.append(self._compile(node))
        compiled += [self._column(column, _range_test(column.type, held)) for column, held in bounds.items()]
        known = [node for node in compiled if node is not None]
        return conjunction(known) if len(known) == len(compiled) else None

    def _compile(self, node: Node) -> Node | None:
        match node:
            case And(operands):
                return self.conjunction(operands)
            case Or(operands):
                parts = [self._compile(operand) for operand in operands]
                known = [part for part in parts if part is not None]
                return disjunction(known) if len(known) == len(parts) else None
            case Not(operand):
                inner = self._compile(operand)
                return None if inner is None else negate(inner)
            case Comparison() if node.op in _RANGES and _is_number(node):
                return self.conjunction([node])
            case Comparison(op, Column() as column, Literal(value)) if _is_single(column):
                return self._column(column, _comparison_test(op, column.type, value))
            case In(Column() as column) if _is_single(column) and not node.has_null:
                return self._column(column, _set_test(column.type, node.values))
            case Match(_, Column() as column) if _is_single(column) and is_text(column.type):
                return self._column(column, _match_test(node))
            case _:
                return None

    def _column(self, column: Column, test: kernels.ValueTest | None) -> Node | None:
        if test is None:
            return None
        name = f"test {len(self.tests)}"
        self.tests[name] = column.parts[0], test
        return Column((name,), pa.bool_())


def _is_single(column: Column) -> bool:
    """Whether it is a top-level column that is stored without conversion."""
    return (
        len(column.parts) == 1 and column.stored_type == column.type and column.parts[0] not in SYSTEM_FIELDS
    )


def _is_number(node: Comparison) -> bool:
    match node:
        case Comparison(_, Column() as column, Literal() as constant):
            kind = column.type
            return (
                _is_single(column)
                and not constant.is_null
                and (_integer_bits(kind) is not None or at.is_float32(kind) or at.is_float64(kind))
            )
        case _:
            return False


def _integer_bits(kind: pa.DataType) -> int | None:
    """The width of values that can be compared as integers in their stored form."""
    if at.is_integer(kind) or at.is_temporal(kind) or at.is_decimal128(kind):
        return (
            int(kind.bit_width)
            if kind.bit_width in (8, 16, 32, 64, 128) and not at.is_interval(kind)
            else None
        )
    return None


def _range_test(kind: pa.DataType, bounds: Sequence[Comparison]) -> kernels.ValueTest | None:
    """All of some comparisons of one column with constants."""
    if at.is_floating(kind):
        return _float_test(kind, bounds)
    constants = [(node.op, node.right.value) for node in bounds if isinstance(node.right, Literal)]
    bits = _integer_bits(kind)
    assert bits is not None
    signed = not at.is_unsigned_integer(kind)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    low, high = least, most
    for op, value in constants:
        number = int.from_bytes(_stored_bytes(array([value], kind)), "little", signed=signed)
        if op in ("=", ">=", ">"):
            low = max(low, number + (op == ">"))
        if op in ("=", "<=", "<"):
            high = min(high, number - (op == "<"))
    if low > high:
        low, high = most, least  # this range is empty
    first, last = (end.to_bytes(bits // 8, "little", signed=signed) for end in (low, high))
    return kernels.integer_range_test(bits, signed, first, last, False)


def _float_test(kind: pa.DataType, bounds: Sequence[Comparison]) -> kernels.ValueTest | None:
    """NaN equals itself and is greater than every other value; NaN with a sign is less in the total order."""
    low, high, nan, negative_nan = -math.inf, math.inf, True, True
    single = at.is_float32(kind)
    for bound in bounds:
        assert isinstance(bound.right, Literal)
        op, number = bound.op, bound.right.value.as_py()
        if math.isnan(number):
            if bound.total:
                return None
            # Only NaN is at or above NaN, and all other values are below it.
            if op in ("=", ">="):
                low, high = math.inf, -math.inf
            elif op == ">":
                low, high, nan, negative_nan = math.inf, -math.inf, False, False
            elif op == "<":
                nan = negative_nan = False
            continue
        if op in ("=", "<", "<="):
            high, nan = min(high, _next(number, -math.inf, single) if op == "<" else number), False
            negative_nan = negative_nan and bound.total
            if op == "<" and number == -math.inf:
                low = math.inf
        if op in ("=", ">", ">="):
            low = max(low, _next(number, math.inf, single) if op == ">" else number)
            negative_nan = negative_nan and not bound.total
            if op == ">" and number == math.inf:
                high = -math.inf
    return kernels.float_range_test(int(kind.bit_width), low, high, nan, negative_nan, False)


def _next(number: float, towards: float, single: bool) -> float:
    """The neighbour of a number of the width of the column."""
    if not single:
        return math.nextafter(number, towards)
    import numpy as np

    with np.errstate(over="ignore"):  # infinity comes after the largest number
        return float(np.nextafter(np.float32(number), np.float32(towards)))


def _comparison_test(op: str, kind: pa.DataType, value: pa.Scalar) -> kernels.ValueTest | None:
    if not value.is_valid:
        return None
    if is_text(kind) or is_bytes(kind):
        if op not in ("=", "<>") or at.is_fixed_size_binary(kind):
            return None
        wanted = _as_bytes(value.as_py())
        if len(wanted) > _LONGEST_TEXT:
            return kernels.string_set_test([wanted], op == "<>")
        return kernels.string_test([wanted], True, True, op == "<>")
    bits = _integer_bits(kind)
    if bits is None or op != "<>":
        return None
    number = _stored_bytes(array([value], kind))
    return kernels.integer_range_test(bits, not at.is_unsigned_integer(kind), number, number, True)


def _set_test(kind: pa.DataType, values: pa.Array) -> kernels.ValueTest | None:
    if values.type != kind or at.is_fixed_size_binary(kind):
        return None
    if is_text(kind) or is_bytes(kind):
        return kernels.string_set_test([_as_bytes(value) for value in values.to_pylist()], False)
    bits = _integer_bits(kind)
    if bits is None or bits > 64:
        return None
    return kernels.integer_set_test(bits, _stored_bytes(values), False)


def _match_test(node: Match) -> kernels.ValueTest | None:
    at_start, at_end = node.kind == "starts_with", node.kind == "ends_with"
    pieces: list[str] | None = [node.pattern]
    ignores_case = node.kind == "ilike"
    if ignores_case and not has_only_ascii_cases(node.pattern):
        return None
    if node.kind in ("like", "ilike"):
        pieces = _like_pieces(node.pattern)
        if pieces is None:
            return None
        at_start, at_end = bool(pieces[0]), bool(pieces[-1])
        if len(pieces) == 1:
            at_start = at_end = True
        else:
            pieces = [piece for piece in pieces if piece]
    elif not node.pattern:
        pieces, at_start, at_end = [], False, False
    assert pieces is not None
    held = [piece.encode() for piece in pieces]
    if sum(map(len, held)) > _LONGEST_TEXT:
        return None
    return kernels.string_test(held, at_start, at_end, False, ignores_case)


def _like_pieces(pattern: str) -> list[str] | None:
    """The text between the ``%`` of a pattern; None if it has ``_``."""
    pieces, characters = [""], iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "_":
            return None
        elif character == "\\":
            following = next(characters, None)
            if following is None:
                return None
            pieces[-1] += following
        else:
            pieces[-1] += character
    return pieces


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _stored_bytes(values: pa.Array) -> bytes:
    """The values of a fixed-width array without nulls, as they are stored."""
    width = int(values.type.bit_width) // 8
    begin = values.offset * width
    return bytes(memoryview(values.buffers()[1])[begin : begin + len(values) * width])
