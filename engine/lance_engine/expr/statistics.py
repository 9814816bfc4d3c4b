"""Zones: the possible values of a filter over sets of rows for which only statistics are known.

A filter *may* match a zone if it can be true for any of its rows, and *must* match it if it is true for all
of them. Both verdicts are conservative: an unknown zone may match, and never must match. They come from one
computation, the set of truth values that each node can take over the rows, for all zones at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.arrow_values import as_integers, of_numpy, scalar, stored, to_numpy
from lance_engine.expr.tree import And, Column, Comparison, In, IsNull, Literal, Match, Node, Not, Or
from lance_engine.expr.value_types import is_bytes, is_text, value_type
from lance_engine.weak_identity import WeakIdentityDict

Bools = npt.NDArray[np.bool_]
Flags: TypeAlias = "np.bool_ | Bools"
Bound: TypeAlias = "pa.Array | pa.Scalar | None"

_YES, _NO = np.True_, np.False_


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column, or struct field, over n zones: every array has one element per zone.

    `minimum` and `maximum` bound the values that are neither null nor NaN; null stands for an unknown bound,
    None for no bound at all. No value has to equal them: a truncated string is a valid minimum. `null`,
    `held` and `nan` say whether a zone may hold nulls (of a struct field also those of the structs around
    it), values that are neither null nor NaN, and NaN.
    """

    minimum: pa.Array | None
    maximum: pa.Array | None
    null: Bools
    held: Bools
    nan: Bools

    @classmethod
    def from_counts(
        cls,
        rows: npt.NDArray[np.int64],
        minimum: pa.Array | None = None,
        maximum: pa.Array | None = None,
        null_count: npt.NDArray[np.int64] | None = None,
        nan_count: npt.NDArray[np.int64] | None = None,
    ) -> ColumnStatistics:
        """Statistics of zones of this many rows; counts are None where unknown, NaN bounds are ignored."""
        valid = rows if null_count is None else rows - null_count
        return cls(
            _without_nan(minimum),
            _without_nan(maximum),
            (rows if null_count is None else null_count) > 0,
            (valid if nan_count is None else valid - nan_count) > 0,
            (valid if nan_count is None else nan_count) > 0,
        )

    def take(self, zones: npt.NDArray[np.int64]) -> ColumnStatistics:
        """The statistics of some zones, or of parts of them, in this order."""
        minimum, maximum = (
            None if bound is None else pc.take(bound, of_numpy(zones))
            for bound in (self.minimum, self.maximum)
        )
        return ColumnStatistics(minimum, maximum, self.null[zones], self.held[zones], self.nan[zones])


#: Statistics by the parts of a column's path: ``{("a",): ..., ("b", "c"): ...}``; absent columns are unknown.
ZoneStatistics = Mapping[tuple[str, ...], ColumnStatistics]


#: What can be decided of columns by their statistics: in anything else they say nothing.
_DECIDED = (And, Or, Not, Comparison, In, IsNull, Match)


def consulted_columns(node: Node) -> set[tuple[str, ...]]:
    """The columns, by the parts of their paths, whose statistics may decide `match_zones`."""
    consulted_columns: set[tuple[str, ...]] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, Column):
            consulted_columns.add(current.parts)
        elif isinstance(current, _DECIDED):
            pending.extend(current.children)
    return consulted_columns


class ZoneMatch(NamedTuple):
    """Per zone: whether the filter can be true for some row, and whether it is true for every row."""

    may: Bools
    must: Bools


def match_zones(node: Node, statistics: ZoneStatistics, zones: int) -> ZoneMatch:
    """What predicate `node` is over each of `zones` zones.

    `may` False is a proof that no row of the zone matches, `must` True that all rows do.
    """
    truths = _truths(node, statistics)
    return ZoneMatch(
        np.broadcast_to(truths.true, zones), np.broadcast_to(~(truths.false | truths.unknown), zones)
    )


class _Truths(NamedTuple):
    """The truth values that a predicate may take over the rows of each zone."""

    true: Flags
    false: Flags
    unknown: Flags


_ANY = _Truths(_YES, _YES, _YES)


class _Range(NamedTuple):
    """The values that a node may take; `low` and `high` bound those that are neither null nor NaN."""

    low: Bound
    high: Bound
    held: Flags
    """Whether there may be values that are neither null nor NaN."""
    nan: Flags
    null: Flags


def _truths(node: Node, statistics: ZoneStatistics) -> _Truths:
    match node:
        case And(operands):
            return _all(operands, statistics)
        case Or(operands):
            return reduce(_or, (_truths(operand, statistics) for operand in operands))
        case Not(operand):
            return _not(_truths(operand, statistics))
        case Comparison(op, left, right) if left == right:
            return _same(op, _range(left, statistics))
        case Comparison(op, left, right, total):
            compared = _compare(op, _range(left, statistics), _range(right, statistics))
            return _in_total_order(node, compared, statistics) if total else compared
        case In(operand):
            return _member(node, _range(operand, statistics))
        case IsNull(operand, negated):
            return _null_test(operand, negated, statistics)
        case Match(_, operand):
            return _match(node, _range(operand, statistics))
        case Literal(value):
            held = value.as_py()
            return _Truths(np.bool_(held is True), np.bool_(held is False), np.bool_(held is None))
        case Column():
            # A boolean column is a comparison with TRUE.
            return _compare("=", _range(node, statistics), _constant(scalar(True)))
        case _:
            return _ANY


def _all(operands: tuple[Node, ...], statistics: ZoneStatistics) -> _Truths:
    truths = _truths(operands[0], statistics)
    for operand in operands[1:]:
        if not np.any(truths.true):
            return _Truths(_NO, _YES, _YES)  # most fragments end here, for selective filters
        truths = _and(truths, _truths(operand, statistics))
    return truths


def _and(left: _Truths, right: _Truths) -> _Truths:
    unknown = (left.unknown & (right.true | right.unknown)) | (left.true & right.unknown)
    return _Truths(left.true & right.true, left.false | right.false, unknown)


def _or(left: _Truths, right: _Truths) -> _Truths:
    return _not(_and(_not(left), _not(right)))


def _not(inner: _Truths) -> _Truths:
    return _Truths(inner.false, inner.true, inner.unknown)


def _range(node: Node, statistics: ZoneStatistics) -> _Range:
    if isinstance(node, Literal):
        return _constant(node.value)
    floating = np.bool_(at.is_floating(node.type))
    known = statistics.get(node.parts) if isinstance(node, Column) else None
    if known is None:
        return _Range(None, None, _YES, floating, _YES)
    low, high = _bound(known.minimum, node.type), _bound(known.maximum, node.type)
    return _Range(low, high, known.held, known.nan & floating, known.null)


def _constant(value: pa.Scalar) -> _Range:
    nan = at.is_floating(value.type) and value.is_valid and value.as_py() != value.as_py()
    held = value.is_valid and not nan
    bound = _single(value) if held else None
    return _Range(bound, bound, np.bool_(held), np.bool_(nan), np.bool_(not value.is_valid))


def _bound(bound: pa.Array | None, kind: pa.DataType) -> pa.Array | None:
    """A bound in the type in which values of type `kind` are compared; None if it says nothing about them."""
    if bound is None:
        return None
    held = stored(bound)
    if held.type != kind:
        alike = value_type(held.type).id == kind.id or any(
            test(value_type(held.type)) and test(kind)
            for test in (at.is_integer, at.is_floating, is_text, is_bytes)
        )
        try:
            held = pc.cast(held, kind) if alike else None
        except pa.ArrowInvalid:
            held = None
    return None if held is None else _single(held)


def _single(values: Any) -> Any:
    """Half floats have no comparison kernels; single precision holds their values exactly."""
    return pc.cast(values, pa.float32()) if at.is_float16(values.type) else values


def _without_nan(bound: pa.Array | None) -> pa.Array | None:
    if bound is None or not at.is_floating(bound.type):
        return bound
    nan = pc.is_nan(_single(bound))
    return pc.if_else(nan, scalar(None, bound.type), bound) if nan.true_count else bound


def _same(op: str, operand: _Range) -> _Truths:
    held = operand.held | operand.nan
    holds = np.bool_(op in ("=", "<=", ">="))
    return _Truths(held & holds, held & ~holds, operand.null)


def _compare(op: str, left: _Range, right: _Range) -> _Truths:
    if op in (">", ">="):
        return _compare("<" if op == ">" else "<=", right, left)
    if op == "<>":
        return _not(_compare("=", left, right))
    if op == "=":
        true = _reaches(left.low, right.high, True)
        true = true & _reaches(right.low, left.high, True) if np.any(true) else true
    else:
        true = _reaches(left.low, right.high, op == "<=")
    # Where it cannot be true it is false; the other tests are only for zones where it can.
    if not np.any(true):
        false: Flags = _YES
    elif op == "=":
        false = ~(_equal(left.low, left.high) & _equal(right.low, right.high) & _equal(left.low, right.low))
    else:
        false = _reaches(right.low, left.high, op == "<")
    held = left.held & right.held
    # NaN equals itself and is greater than every other value.
    both, right_only = left.nan & right.nan, left.held & right.nan
    true = (held & true) | (both & np.bool_(op != "<")) | (right_only & np.bool_(op != "="))
    false = (held & false) | (both & np.bool_(op == "<")) | (right_only & np.bool_(op == "="))
    return _Truths(true, false | (left.nan & right.held), left.null | right.null)


def _in_total_order(node: Comparison, truths: _Truths, statistics: ZoneStatistics) -> _Truths:
    """The possible results of a comparison, from those where NaN is the largest value."""
    left, right = (_range(side, statistics) for side in node.children)
    # Statistics record neither the sign of NaN nor, between columns, that of zero.
    either = (left.nan & (right.held | right.nan)) | (left.held & right.nan)
    if not isinstance(node.right, Literal):
        either = either | (
            left.held
            & right.held
            & _reaches(left.low, right.high, True)
            & _reaches(right.low, left.high, True)
        )
    return _Truths(truths.true | either, truths.false | either, truths.unknown)


def _reaches(low: Bound, high: Bound, equal: bool) -> Flags:
    """Whether a value at or above `low` can be below one (or equal one) at or below `high`."""
    return _tested(pc.less_equal if equal else pc.less, low, high, unknown=True)


def _equal(left: Bound, right: Bound) -> Flags:
    """Whether two bounds are known to be equal."""
    return _tested(pc.equal, left, right, unknown=False)


def _tested(test: Callable[[Bound, Bound], Any], left: Bound, right: Bound, *, unknown: bool) -> Flags:
    if left is None or right is None or left.type != right.type:
        return np.bool_(unknown)
    result = test(left, right)
    if isinstance(result, pa.Scalar):
        return np.bool_(result.as_py() if result.is_valid else unknown)
    known = pc.fill_null(result, unknown) if result.null_count else result
    flags: Bools = to_numpy(known)
    return flags


def _member(node: In, operand: _Range) -> _Truths:
    keys, has_nan = _sorted_keys(node)
    nan, listed_null = np.bool_(has_nan), np.bool_(node.has_null)
    # Where the values at or above `low` begin among the keys, and where those at or below `high` end.
    first = _positions(keys, operand.low, node.values.type, "left", 0)
    last = _positions(keys, operand.high, node.values.type, "right", len(keys))
    within = np.asarray(first < last)
    # Bounds that meet on one of the values leave nothing else.
    only = within & _equal(operand.low, operand.high)
    true = (operand.held & within) | (operand.nan & nan)
    false = (operand.held & ~only) | (operand.nan & (~nan | np.bool_(node.total)))
    # Next to a NULL in the list, what equals none of the values is unknown.
    return _Truths(true, false & ~listed_null, operand.null | (false & listed_null))


def _positions(
    keys: npt.NDArray[Any], bound: Bound, kind: pa.DataType, side: Any, unknown: int
) -> npt.NDArray[np.intp] | int:
    if not isinstance(bound, pa.Array) or bound.type != _comparing_type(kind):
        return unknown
    positions = np.full(len(bound), unknown, dtype=np.intp)
    known = to_numpy(pc.is_valid(bound))
    positions[known] = np.searchsorted(keys, _keys(pc.drop_null(bound)), side)
    return positions


#: The values of a list in ascending order, and whether NaN is among them; kept for other fragments.
_sorted: WeakIdentityDict[In, tuple[npt.NDArray[Any], bool]] = WeakIdentityDict()


def _sorted_keys(node: In) -> tuple[npt.NDArray[Any], bool]:
    sorted_keys = _sorted.get(node)
    return _sorted.setdefault(node, _sort(node)) if sorted_keys is None else sorted_keys


def _sort(node: In) -> tuple[npt.NDArray[Any], bool]:
    values = _single(node.values)
    has_nan = False
    if at.is_floating(values.type):
        nan = pc.is_nan(values)
        has_nan = bool(nan.true_count)
        values = pc.filter(values, pc.invert(nan))
    return np.sort(_keys(values)), has_nan


def _comparing_type(kind: pa.DataType) -> pa.DataType:
    return pa.float32() if at.is_float16(kind) else kind


def _keys(values: pa.Array) -> npt.NDArray[Any]:
    """Values without nulls as numpy sorts them: numbers, or Python bytes and decimals."""
    if is_text(values.type):
        # UTF-8 has the order of its characters, and bounds of a damaged file need not be UTF-8.
        values = pc.cast(values, pa.large_binary())
    if at.is_temporal(values.type):
        values = as_integers(values)
    if at.is_primitive(values.type):
        return to_numpy(values)
    keys = np.empty(len(values), dtype=object)
    keys[:] = values.to_pylist()
    return keys


def _null_test(operand: Node, negated: bool, statistics: ZoneStatistics) -> _Truths:
    if at.is_boolean(operand.type) and not isinstance(operand, (Column, Literal)):
        inner = _truths(operand, statistics)
        null, held = inner.unknown, inner.true | inner.false
    else:
        bounds = _range(operand, statistics)
        null, held = bounds.null, bounds.held | bounds.nan
    return _Truths(held, null, _NO) if negated else _Truths(null, held, _NO)


def _match(node: Match, operand: _Range) -> _Truths:
    prefix = _prefix(node)
    if prefix is None:
        return _Truths(operand.held, operand.held, operand.null)
    kind = node.operand.type
    first, following = scalar(prefix, kind), _successor(prefix)
    after = None if following is None else scalar(following, kind)
    true = _reaches(first, operand.high, True) & _reaches(operand.low, after, False)
    inside: Flags = _NO
    if node.kind == "starts_with":
        inside = _tested(pc.less_equal, first, operand.low, unknown=False)
        if after is not None:
            inside = inside & _tested(pc.less, operand.high, after, unknown=False)
    return _Truths(operand.held & true, operand.held & ~inside, operand.null)


def _prefix(node: Match) -> str | None:
    """The prefix of every matching string; None if unknown."""
    if node.kind == "starts_with":
        return node.pattern
    if node.kind != "like":
        return None
    prefix, characters = "", iter(node.pattern)
    for character in characters:
        if character in "%_":
            break
        prefix += next(characters, "") if character == "\\" else character
    return prefix


def _successor(prefix: str) -> str | None:
    """The smallest string above all that start with `prefix`, or None."""
    held = prefix.rstrip("\U0010ffff")
    if not held:
        return None
    code = ord(held[-1]) + 1
    # The surrogates are not characters.
    return held[:-1] + chr(0xE000 if code == 0xD800 else code)
