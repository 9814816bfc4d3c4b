"""Functions over lists that indices answer, subscripts, and constant lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.arrow_values import as_integers
from lance_engine.expr.nested import list_ends, repeated, same
from lance_engine.expr.total_order import total_key
from lance_engine.expr.value_types import is_list, is_nested, value_type

I64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


class _Items:
    """The items of lists, one after another, and where those of each list are."""

    def __init__(self, lists: pa.Array) -> None:
        if not is_list(lists.type):
            raise pa.ArrowTypeError(f"{lists.type} is not a list")
        self.values, self.starts, self.ends = list_ends(lists)
        self.lengths: I64Array = self.ends - self.starts
        self.valid = lists.is_valid()

    @property
    def owners(self) -> I64Array:
        """For each item, the number of its list."""
        owners: I64Array = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return owners

    def any(self, mask: pa.Array) -> BoolArray:
        """For each list, whether the mask is true for any of its items."""
        hit_lists = np.zeros(len(self.lengths), dtype=np.bool_)
        hits = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
        hit_lists[self.owners[hits]] = True
        return hit_lists

    def masked(self, truths: BoolArray, also: pa.Array | None = None) -> pa.Array:
        """Truth values that are null where the list is, or where `also` is false."""
        valid = self.valid if also is None else pc.and_(self.valid, also)
        return pc.if_else(valid, pa.array(truths), pa.scalar(None, pa.bool_()))


def _equal(values: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """Equality of the bits of floating-point numbers: -0.0 is not 0.0 here; null if a side is null."""
    plain = value_type(values.type)
    if plain != values.type:
        values = values.cast(plain)
    if wanted.type != plain:
        wanted = wanted.cast(plain)
    if not is_nested(plain) and not at.is_floating(plain):
        return pc.equal(values, wanted)
    return same(values, repeated(wanted, len(values)))


def array_has(lists: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """Whether a list has an item; null for a null list or item."""
    items = _Items(lists)
    if isinstance(wanted, pa.Scalar):
        if not wanted.is_valid:
            return pa.nulls(len(lists), pa.bool_())
        return items.masked(items.any(_equal(items.values, wanted)))
    each = wanted.take(pa.array(items.owners))
    return items.masked(items.any(_equal(items.values, each)), wanted.is_valid())


def _wanted_items(wanted: pa.Scalar) -> pa.Array:
    return pa.array(wanted.values) if wanted.is_valid else pa.nulls(0)


def _item_mask(items: _Items, wanted: pa.Scalar) -> pa.Array:
    return _equal(items.values, wanted) if wanted.is_valid else items.values.is_null()


def array_has_any(lists: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """Whether two lists share an item; null items are equal here."""
    if not isinstance(wanted, pa.Scalar):
        return _per_row(lists, wanted, lambda held, others: any(item in held for item in others))
    return _folded(lists, wanted, np.logical_or)


def array_has_all(lists: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """Whether a list has every item of another; null items are equal here."""
    if not isinstance(wanted, pa.Scalar):
        return _per_row(lists, wanted, lambda held, others: all(item in held for item in others))
    return _folded(lists, wanted, np.logical_and)


def _folded(lists: pa.Array, wanted: pa.Scalar, join: np.ufunc) -> pa.Array:
    """For every list whether it has the wanted items, joined over these."""
    items = _Items(lists)
    others = _wanted_items(wanted)
    truths = np.full(len(lists), join.identity, dtype=np.bool_)
    if not len(others):
        return pa.array(truths)
    for item in others:
        join(truths, items.any(_item_mask(items, item)), out=truths)
    return items.masked(truths)


def _per_row(left: pa.Array, right: pa.Array, test: Callable[[Any, Any], bool]) -> pa.Array:
    if not is_list(left.type) or not is_list(right.type):
        raise pa.ArrowTypeError(f"{left.type} and {right.type} are not both lists")
    pairs = zip(_with_keys(left).to_pylist(), _with_keys(right).to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else test(a, b) for a, b in pairs], pa.bool_())


def _with_keys(lists: pa.Array) -> pa.Array:
    """Lists of floating-point numbers or times as lists of whole numbers, which are equal for equal bits."""
    kind = lists.type.value_type
    if not (at.is_floating(kind) or at.is_temporal(kind)):
        return lists
    items = _Items(lists)
    offsets = pa.array(np.append(0, items.ends), pa.int64())
    keys = total_key(items.values) if at.is_floating(kind) else as_integers(items.values)
    return pa.LargeListArray.from_arrays(offsets, keys, mask=lists.is_null())


def array_element(lists: pa.Array, position: pa.Array | pa.Scalar) -> pa.Array:
    """The item at a position, from 1, or from -1 at the end; null where none exists."""
    items = _Items(lists)
    if isinstance(position, pa.Scalar):
        position = repeated(position, len(lists))
    known = position.is_valid().to_numpy(zero_copy_only=False)
    place = pc.fill_null(position.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    index = np.where(place > 0, items.starts + place - 1, items.ends + place)
    exists = known & (place != 0) & (index >= items.starts) & (index < items.ends)
    return items.values.take(pa.array(np.where(exists, index, 0), mask=~exists))


def array_length(lists: pa.Array) -> pa.Array:
    """The number of items in a list."""
    if not is_list(lists.type) and not at.is_map(lists.type):
        raise pa.ArrowTypeError(f"{lists.type} is not a list")
    return pc.list_value_length(lists).cast(pa.int64())


def cardinality(lists: pa.Array) -> pa.Array:
    """The number of items in a list, or of those in the lists that it contains."""
    if not is_list(lists.type) or not is_list(lists.type.value_type):
        return array_length(lists)
    items = _Items(lists)
    counts = pc.fill_null(cardinality(items.values), 0).to_numpy(zero_copy_only=False)
    sums = np.append(0, np.cumsum(counts))
    return pa.array(sums[items.ends] - sums[items.starts], pa.int64(), mask=lists.is_null().to_numpy(False))


def make_array(*items: pa.Array | pa.Scalar) -> pa.Array:
    """A list of the values of a row."""
    length = next((len(item) for item in items if not isinstance(item, pa.Scalar)), 1)
    columns = [repeated(item, length) for item in items]
    if not columns:
        return pa.array([[]], pa.list_(pa.null()))
    kind = next((column.type for column in columns if not at.is_null(column.type)), pa.null())
    held = pa.concat_arrays([column.cast(kind) for column in columns])
    row_by_row = np.arange(len(held)).reshape(len(columns), length).T.ravel()
    return pa.ListArray.from_arrays(
        pa.array(np.arange(length + 1) * len(columns), pa.int32()), held.take(pa.array(row_by_row))
    )


def _of_rows(compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` for a constant list, too, where other arguments have a value for each row."""

    def call(lists: pa.Array | pa.Scalar, *others: pa.Array | pa.Scalar) -> pa.Array:
        rows = next((len(other) for other in others if not isinstance(other, pa.Scalar)), 1)
        return compute(repeated(lists, rows), *others)

    return call


_OF_LISTS: Final[dict[str, Callable[..., Any]]] = {
    "array_has": array_has,
    "array_has_any": array_has_any,
    "array_has_all": array_has_all,
    "array_element": array_element,
    "array_length": array_length,
    "cardinality": cardinality,
}
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _of_rows(compute) for name, compute in _OF_LISTS.items()},
    "make_array": make_array,
}
