"""Zones: what a filter can be over a set of rows of which only statistics are known.

`may_match` says whether the filter can be true for any of the rows, `must_match` whether it is true for all
of them. Both are conservative: what is unknown may match and need not match. They come from one computation,
the set of truth values that a node can take over the rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.types as at

from lance_engine.expr.tree import And, Column, Comparison, In, IsNull, Literal, Match, Node, Not, Or
from lance_engine.expr.value_types import MILLISECONDS_PER_DAY, PER_SECOND, is_bytes, is_number, is_text


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one column, or struct field, over the rows of a zone; None stands for unknown.

    `minimum` and `maximum` bound the values that are neither null nor NaN; they need not be attained, so that
    a truncated string is a fine minimum, and `truncated_maximum` of it a fine maximum. A bound that is NaN
    says nothing. `null_count` counts nulls (of a struct field also those of the structs around it),
    `nan_count` NaN values.
    """

    row_count: int
    minimum: pa.Scalar | None = None
    maximum: pa.Scalar | None = None
    null_count: int | None = None
    nan_count: int | None = None


#: Statistics by the parts of a column's path: ``{("a",): ..., ("b", "c"): ...}``; absent columns are unknown.
ZoneStatistics = Mapping[tuple[str, ...], ColumnStatistics]


def may_match(node: Node, statistics: ZoneStatistics) -> bool:
    """Whether predicate `node` can be true for some row of the zone. False is a proof that no row matches."""
    return not _is_empty(statistics) and _truths(node, statistics).true


def must_match(node: Node, statistics: ZoneStatistics) -> bool:
    """Whether predicate `node` is true for every row of the zone. True is a proof that all rows match."""
    if _is_empty(statistics):
        return True
    found = _truths(node, statistics)
    return not found.false and not found.unknown


def truncated_maximum(prefix: pa.Scalar) -> pa.Scalar | None:
    """An upper bound of all strings or blobs that start with `prefix`; None when there is none."""
    following = _successor(prefix.as_py())
    return None if following is None else pa.scalar(following, prefix.type)


class _Truths(NamedTuple):
    """The truth values that a predicate may take over the rows of a zone."""

    true: bool
    false: bool
    unknown: bool


class _Range(NamedTuple):
    """The values that a node may take; `low` and `high` bound those that are neither null nor NaN."""

    low: Any
    high: Any
    held: bool
    """Whether there may be values that are neither null nor NaN."""
    nan: bool
    null: bool


def _truths(node: Node, statistics: ZoneStatistics) -> _Truths:
    match node:
        case And(operands):
            parts = [_truths(operand, statistics) for operand in operands]
            return _Truths(
                all(part.true for part in parts),
                any(part.false for part in parts),
                any(part.unknown for part in parts) and all(part.true or part.unknown for part in parts),
            )
        case Or(operands):
            parts = [_truths(operand, statistics) for operand in operands]
            return _Truths(
                any(part.true for part in parts),
                all(part.false for part in parts),
                any(part.unknown for part in parts) and all(part.false or part.unknown for part in parts),
            )
        case Not(operand):
            inner = _truths(operand, statistics)
            return _Truths(inner.false, inner.true, inner.unknown)
        case Comparison(op, left, right) if left == right:
            return _same(op, _range(left, statistics))
        case Comparison(op, left, right):
            return _compare(op, _range(left, statistics), _range(right, statistics))
        case In(operand):
            return _member(node, _range(operand, statistics))
        case IsNull(operand, negated):
            return _null_test(operand, negated, statistics)
        case Match(_, operand):
            return _match(node, _range(operand, statistics))
        case Literal(value):
            held = value.as_py()
            return _Truths(held is True, held is False, held is None)
        case Column():
            # A boolean column is a comparison with TRUE.
            return _compare("=", _range(node, statistics), _Range(True, True, True, False, False))
        case _:
            return _Truths(True, True, True)


def _is_empty(statistics: ZoneStatistics) -> bool:
    return any(found.row_count == 0 for found in statistics.values())


def _range(node: Node, statistics: ZoneStatistics) -> _Range:
    if isinstance(node, Literal):
        key = _key(node.value, node.type)
        return _Range(key, key, key is not None, _is_nan(node.value), not node.value.is_valid)
    floating = at.is_floating(node.type)
    known = statistics.get(node.parts) if isinstance(node, Column) else None
    if known is None:
        return _Range(None, None, True, floating, True)
    null = known.row_count > 0 if known.null_count is None else known.null_count > 0
    valid = known.row_count - (known.null_count or 0)
    nan = floating and (valid > 0 if known.nan_count is None else known.nan_count > 0)
    held = valid - ((known.nan_count or 0) if floating else 0) > 0
    return _Range(_key(known.minimum, node.type), _key(known.maximum, node.type), held, nan, null)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(at.is_floating(value.type) and value.is_valid and math.isnan(value.as_py()))


def _key(value: pa.Scalar | None, kind: pa.DataType) -> Any:
    """A Python value that orders as the scalar does in a column of type `kind`; None where there is none."""
    if value is None or not value.is_valid or _is_nan(value):
        return None
    if isinstance(value, (pa.DictionaryScalar, pa.ExtensionScalar)):
        return _key(value.value, kind)
    same = value.type == kind or any(test(value.type) and test(kind) for test in (is_number, is_text))
    if at.is_temporal(kind) and at.is_temporal(value.type):
        return _instant(value) if value.type.id == kind.id else None
    if is_bytes(kind) and isinstance(held := value.as_py(), bytes):
        return held
    return value.as_py() if same else None


def _instant(value: pa.Scalar) -> int:
    """A count of nanoseconds, so that units compare."""
    if at.is_date32(value.type):
        return int(value.value) * MILLISECONDS_PER_DAY * 1_000_000
    return int(value.value) * (
        1_000_000_000 // (1_000 if at.is_date64(value.type) else PER_SECOND[value.type.unit])
    )


def _same(op: str, operand: _Range) -> _Truths:
    held = operand.held or operand.nan
    holds = op in ("=", "<=", ">=")
    return _Truths(held and holds, held and not holds, operand.null)


def _compare(op: str, left: _Range, right: _Range) -> _Truths:
    if op in (">", ">="):
        return _compare("<" if op == ">" else "<=", right, left)
    if op == "<>":
        equal = _compare("=", left, right)
        return _Truths(equal.false, equal.true, equal.unknown)
    unknown = left.null or right.null
    if not (left.held or left.nan) or not (right.held or right.nan):
        # One side is null throughout, or there are no rows.
        return _Truths(False, False, unknown)
    true = false = False
    if left.held and right.held:
        if op == "=":
            true = _reaches(left.low, right.high, True) and _reaches(right.low, left.high, True)
            false = not (left.low is not None and left.low == left.high == right.low == right.high)
        else:
            true = _reaches(left.low, right.high, op == "<=")
            false = _reaches(right.low, left.high, op == "<")
    # NaN equals itself and is greater than every other value.
    if left.nan and right.nan:
        true, false = true or op != "<", false or op == "<"
    if left.nan and right.held:
        false = True
    if left.held and right.nan:
        true, false = true or op != "=", false or op == "="
    return _Truths(true, false, unknown)


def _reaches(low: Any, high: Any, equal: bool) -> bool:
    """Whether a value at or above `low` can be below one (or equal one) at or below `high`."""
    if low is None or high is None:
        return True
    return bool(low <= high if equal else low < high)


def _member(node: In, operand: _Range) -> _Truths:
    keys, nan = _sorted_keys(node)
    low, high = operand.low, operand.high
    first = 0 if low is None else bisect_left(keys, low)
    within = first < len(keys) and (high is None or keys[first] <= high)
    # Bounds that meet on one of the values leave nothing else.
    only = within and low is not None and low == high
    true = (operand.held and within) or (operand.nan and nan)
    false = (operand.held and not only) or (operand.nan and not nan)
    # Next to a NULL in the list, what equals none of the values is unknown.
    return _Truths(true, false and not node.has_null, operand.null or (false and node.has_null))


@lru_cache(maxsize=32)
def _sorted_keys(node: In) -> tuple[list[Any], bool]:
    """The values of a list as sorted keys, and whether NaN is among them; kept, since many zones ask."""
    keys = [_key(value, node.values.type) for value in node.values]
    return sorted(key for key in keys if key is not None), any(map(_is_nan, node.values))


def _null_test(operand: Node, negated: bool, statistics: ZoneStatistics) -> _Truths:
    if at.is_boolean(operand.type) and not isinstance(operand, (Column, Literal)):
        inner = _truths(operand, statistics)
        null, held = inner.unknown, inner.true or inner.false
    else:
        found = _range(operand, statistics)
        null, held = found.null, found.held or found.nan
    return _Truths(held, null, False) if negated else _Truths(null, held, False)


def _match(node: Match, operand: _Range) -> _Truths:
    prefix = _prefix(node)
    if not operand.held or prefix is None:
        return _Truths(operand.held, operand.held, operand.null)
    following = _successor(prefix)
    true = _reaches(prefix, operand.high, True) and (
        following is None or operand.low is None or operand.low < following
    )
    whole = node.kind == "starts_with" and operand.low is not None and operand.low >= prefix
    inside = whole and (following is None or (operand.high is not None and operand.high < following))
    return _Truths(true, not inside, operand.null)


def _prefix(node: Match) -> str | None:
    """What every matching string starts with; None when that is not known."""
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


def _successor(prefix: Any) -> Any:
    """The least string (or bytes) above all that start with `prefix`; None when there is none."""
    if isinstance(prefix, bytes):
        held = prefix.rstrip(b"\xff")
        return held[:-1] + bytes([held[-1] + 1]) if held else None
    held_text = prefix.rstrip("\U0010ffff")
    if not held_text:
        return None
    code = ord(held_text[-1]) + 1
    # The surrogates are no characters.
    return held_text[:-1] + chr(0xE000 if code == 0xD800 else code)
