"""Comparison of lists and structs, in the order of the official implementation.

Lists are compared item by item, the shorter one first where one is the beginning of the other; structs field
by field. Inside of them, null equals null and is less than every value, and floating-point numbers are in the
total order. A list or struct that is null itself makes the comparison unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.arrow_values import to_numpy
from lance_engine.expr.total_order import total_key
from lance_engine.expr.value_types import is_list, value_type

Order = npt.NDArray[np.int8]
Test = Callable[[Order], npt.NDArray[np.bool_]]


def list_ends(lists: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The items of lists, one list after another, and where the items of each begin and end."""
    lengths = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    # Flattening leaves the items of null lists out, but not those of fixed-size lists.
    held = lists.filter(lists.is_valid()) if at.is_fixed_size_list(lists.type) else lists
    ends = np.cumsum(lengths)
    return held.flatten(), ends - lengths, ends


def order(left: pa.Array, right: pa.Array) -> Order:
    """-1, 0 or 1 for each pair of two arrays of one type: whether the first is less, equal or greater."""
    if not len(left):
        return np.zeros(0, np.int8)
    valid, also = to_numpy(left.is_valid()), to_numpy(right.is_valid())
    signs: Order = valid.astype(np.int8) - also.astype(np.int8)
    both = np.flatnonzero(valid & also)
    if len(both) == len(signs):
        return _order_valid(left, right)
    if len(both):
        signs[both] = _order_valid(left.take(pa.array(both)), right.take(pa.array(both)))
    return signs


def _order_valid(left: pa.Array, right: pa.Array) -> Order:
    kind = left.type
    if is_list(kind):
        return _order_lists(left, right)
    if at.is_struct(kind):
        signs = np.zeros(len(left), np.int8)
        for first, second in zip(left.flatten(), right.flatten(), strict=True):
            pending = np.flatnonzero(signs == 0)
            rows = pa.array(pending)
            signs[pending] = order(first.take(rows), second.take(rows))
        return signs
    if at.is_null(kind):
        return np.zeros(len(left), np.int8)
    plain = value_type(kind)
    if plain != kind:
        left, right = left.cast(plain), right.cast(plain)
    if at.is_floating(plain):
        left, right = total_key(left), total_key(right)
    more, less = to_numpy(pc.greater(left, right)), to_numpy(pc.less(left, right))
    return more.astype(np.int8) - less.astype(np.int8)


def _order_lists(left: pa.Array, right: pa.Array) -> Order:
    items, starts, ends = list_ends(left)
    others, other_starts, other_ends = list_ends(right)
    lengths, other_lengths = ends - starts, other_ends - other_starts
    shared = np.minimum(lengths, other_lengths)
    owners = np.repeat(np.arange(len(shared)), shared)
    within = np.arange(len(owners)) - np.repeat(np.cumsum(shared) - shared, shared)
    each = order(
        items.take(pa.array(starts[owners] + within)), others.take(pa.array(other_starts[owners] + within))
    )
    signs: Order = np.sign(lengths - other_lengths).astype(np.int8)
    different = np.flatnonzero(each)[::-1]
    signs[owners[different]] = each[different]  # of several items, the first is written last
    return signs


def same(left: pa.Array, right: pa.Array) -> pa.Array:
    """Whether the values of two arrays of one type are equal; null where one is."""
    return _tested(left, right, lambda signs: signs == 0)


def _tested(left: pa.Array, right: pa.Array, test: Test) -> pa.Array:
    valid = pc.and_(left.is_valid(), right.is_valid())
    return pc.if_else(valid, pa.array(test(order(left, right))), pa.scalar(None, pa.bool_()))


def _comparison(test: Test) -> Callable[..., Any]:
    def compute(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array:
        rows = next((len(side) for side in (left, right) if not isinstance(side, pa.Scalar)), 1)
        return _tested(repeated(left, rows), repeated(right, rows), test)

    return compute


def repeated(value: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    """The value of every row."""
    if not isinstance(value, pa.Scalar):
        return value
    return pa.repeat(value, rows) if rows else pa.array([], value.type)


def named_struct(*arguments: pa.Array | pa.Scalar) -> pa.Array:
    """A struct of names, which are constants, and values in turn."""
    names = [value[0] if isinstance(value, pa.Array) and len(value) else value for value in arguments[::2]]
    texts = [name.as_py() if isinstance(name, pa.Scalar) else None for name in names]
    if len(arguments) % 2 or not all(isinstance(text, str) for text in texts) or not texts:
        raise pa.ArrowTypeError("names, which are constant strings, and values in turn")
    rows = next((len(value) for value in arguments[1::2] if not isinstance(value, pa.Scalar)), 1)
    columns = [pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value for value in arguments[1::2]]
    return pa.StructArray.from_arrays(columns, texts)


#: The functions that compare, by the operator that they stand for.
OPERATORS: Final = {"=": "nested_equal", "<": "nested_less", "<=": "nested_less_equal"}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "nested_equal": _comparison(lambda signs: signs == 0),
    "nested_less": _comparison(lambda signs: signs < 0),
    "nested_less_equal": _comparison(lambda signs: signs <= 0),
    "named_struct": named_struct,
    "get_field": lambda structs, name: pc.struct_field(structs, name.as_py()),
}
