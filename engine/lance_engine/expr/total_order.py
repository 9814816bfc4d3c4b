"""The order of floating-point numbers in filter texts, which is that of the official implementation.

IEEE 754 calls it the total order: NaN with a sign, -inf, numbers, inf, NaN without a sign. NaN equals only
NaN of the same bits. -0.0 equals 0.0 in comparisons with a constant, and is less than 0.0
in comparisons of columns. SQL engines have their own orders, so the reader of a filter text requests this
one.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine.arrow_values import to_numpy
from lance_engine.expr.tree import Comparison, In, Literal, Node, rebuilt, walk

_INTEGERS = {16: np.int16, 32: np.int32, 64: np.int64}


def in_total_order(node: Node) -> Node:
    """`node` with its comparisons of floating-point numbers in the total order, where that matters."""
    if not any(isinstance(part, (Comparison, In)) and _depends(part) for part in walk(node)):
        return node

    def change(node: Node) -> Node:
        if isinstance(node, (Comparison, In)) and _depends(node):
            return dataclasses.replace(node, total=True)
        return node

    return rebuilt(node, change)


def tells_nan_apart(node: Node) -> bool:
    """Whether it matters to a predicate which NaN a value is."""
    return any(isinstance(part, (Comparison, In)) and part.total for part in walk(node))


def _depends(node: Comparison | In) -> bool:
    """Whether the order of NaN makes a difference to a comparison."""
    if isinstance(node, In):
        return has_nan(node.values)
    if not at.is_floating(node.left.type) or node.left == node.right:
        return False
    if isinstance(node.right, Literal) and node.op in ("=", "<>"):
        return has_nan(pa.repeat(node.right.value, 1))
    return True


def has_nan(values: pa.Array) -> bool:
    """Whether one of the values is NaN."""
    return at.is_floating(values.type) and bool(np.isnan(to_numpy(pc.drop_null(values))).any())


def total_key(values: pa.Array) -> pa.Array:
    """Whole numbers in the total order of floating-point numbers; nulls stay nulls."""
    bits = values.type.bit_width
    held = to_numpy(pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values)
    raw = held.view(_INTEGERS[bits])
    # Negative numbers are stored as sign and magnitude.
    key = raw ^ ((raw >> (bits - 1)) & np.iinfo(raw.dtype).max)
    mask = to_numpy(pc.is_null(values)) if values.null_count else None
    return pa.array(key, mask=mask)


def is_negative_nan(values: pa.Array) -> pa.BooleanArray:
    """Whether each value is NaN with a sign; false for nulls."""
    held = to_numpy(pc.fill_null(values, pa.scalar(0, values.type)) if values.null_count else values)
    return pa.array(np.isnan(held) & np.signbit(held))
