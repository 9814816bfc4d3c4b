"""Conditions on `_rowid` and `_rowaddr`, which are looked up instead of tested."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_engine.arrow_values import to_numpy
from lance_engine.distinct import distinct
from lance_engine.expr.build import conjunction
from lance_engine.expr.tree import And, Column, Comparison, In, Literal, Node, Or, conjuncts
from lance_engine.index.ranges import intersection, ranges_of
from lance_engine.scan.system import ROW_ID, ROW_NUMBERS

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

I64Array = npt.NDArray[np.int64]

_OFFSET_BITS = 32
# Maximum row address and row id: fragments have 31-bit ids, and ids are counted from zero.
_LIMIT = 2**63 - 1


class RowIdMatches(NamedTuple):
    """The rows that the conditions on row ids of a filter allow."""

    addresses: I64Array
    """Ascending disjoint ranges of row addresses, shape (n, 2). Rows in them may be deleted or not exist."""
    residual: Node | None
    """The conditions that remain to be tested."""

    def in_fragment(self, fragment: int) -> I64Array:
        """The ranges of physical rows in one fragment."""
        first = fragment << _OFFSET_BITS
        whole = np.array([[first, first + (1 << _OFFSET_BITS)]], dtype=np.int64)
        return intersection(self.addresses, whole) - first


def match_row_ids(filter: Node, snapshot: Snapshot) -> RowIdMatches | None:
    """The rows that the conditions on row ids in the conjunction `filter` allow; None without any."""
    intervals: list[I64Array] = []
    residual: list[Node] = []
    for conjunct in conjuncts(filter):
        matches = _matches(conjunct, snapshot)
        if matches is None:
            residual.append(conjunct)
        else:
            intervals.append(matches)
    if not intervals:
        return None
    return RowIdMatches(reduce(intersection, intervals), conjunction(residual) if residual else None)


def _matches(node: Node, snapshot: Snapshot) -> I64Array | None:
    """The addresses for which `node` is true; None if it depends on other columns."""
    match node:
        case And(operands) | Or(operands):
            parts = [_matches(operand, snapshot) for operand in operands]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            return reduce(intersection, known) if isinstance(node, And) else _merged(np.concatenate(known))
        case Comparison(op, Column((name,)), Literal(value)) if name in ROW_NUMBERS and op != "<>":
            constant = value.as_py()
            if constant is None:
                return np.empty((0, 2), dtype=np.int64)
            low = constant + (op == ">") if op in ("=", ">", ">=") else 0
            high = constant + (op in ("=", "<=")) if op in ("=", "<", "<=") else _LIMIT
            return _between(name, min(low, _LIMIT), min(high, _LIMIT), snapshot)
        case In(Column((name,))) if name in ROW_NUMBERS:
            values = distinct(to_numpy(node.values).astype(np.uint64))
            if name == ROW_ID and snapshot.has_stable_row_ids:
                values = np.sort(snapshot.find_row_ids(values))
            values = values[values < np.uint64(_LIMIT)].astype(np.int64)
            return ranges_of(values) if len(values) else np.empty((0, 2), dtype=np.int64)
        case _:
            return None


def _between(name: str, low: int, high: int, snapshot: Snapshot) -> I64Array:
    if low >= high:
        return np.empty((0, 2), dtype=np.int64)
    if name == ROW_ID and snapshot.has_stable_row_ids:
        return _merged(snapshot.row_id_range(low, high))
    return np.array([[low, high]], dtype=np.int64)


def _merged(ranges: I64Array) -> I64Array:
    """Arbitrary ranges as ascending disjoint ones."""
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    if len(ranges) < 2:
        return ranges
    ends = np.maximum.accumulate(ranges[:, 1])
    firsts = np.append(0, np.flatnonzero(ranges[1:, 0] > ends[:-1]) + 1)
    lasts = np.append(firsts[1:], len(ranges)) - 1
    return np.stack([ranges[firsts, 0], ends[lasts]], axis=1)
