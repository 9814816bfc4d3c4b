"""Functions over lists: `array_has` and similar ones, subscripts, lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from lance_engine.arrow_compute import pc
from lance_engine.expr.total_order import total_key

I64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def is_list(kind: pa.DataType) -> bool:
    """Whether values have items that are counted from 1."""
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


class _Items:
    """The items of lists, one after another, and where those of each list are."""

    def __init__(self, lists: pa.Array) -> None:
        if not is_list(lists.type):
            raise pa.ArrowTypeError(f"{lists.type} is not a list")
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
        self.lengths: I64Array = lengths.to_numpy(zero_copy_only=False).astype(np.int64)
        self.values = lists.flatten()
        if at.is_fixed_size_list(lists.type) and lists.null_count:
            # Flattening leaves the items of null lists out.
            self.values = lists.filter(lists.is_valid()).flatten()
        self.ends: I64Array = np.cumsum(self.lengths)
        self.starts: I64Array = self.ends - self.lengths
        self.valid = lists.is_valid()

    @property
    def owners(self) -> I64Array:
        """For each item, the number of its list."""
        owners: I64Array = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return owners

    def any(self, mask: pa.Array) -> BoolArray:
        """For each list, whether the mask is true for any of its items."""
        found = np.zeros(len(self.lengths), dtype=np.bool_)
        hits = pc.fill_null(mask, False).to_numpy(zero_copy_only=False)
        found[self.owners[hits]] = True
        return found

    def masked(self, found: BoolArray, also: pa.Array | None = None) -> pa.Array:
        """Truth values that are null where the list is, or where `also` is false."""
        valid = self.valid if also is None else pc.and_(self.valid, also)
        return pc.if_else(valid, pa.array(found), pa.scalar(None, pa.bool_()))


def _equal(values: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """Equality in which NaN equals NaN of the same bits; null if a side is null."""
    if values.type != wanted.type and at.is_floating(wanted.type) and at.is_integer(values.type):
        values = values.cast(wanted.type)
    elif values.type != wanted.type:
        wanted = wanted.cast(values.type)
    if not at.is_floating(values.type):
        return pc.equal(values, wanted)
    if not isinstance(wanted, pa.Scalar):
        return pc.equal(total_key(values), total_key(wanted))
    if not wanted.is_valid or not np.isnan(wanted.as_py()):
        return pc.equal(values, wanted)
    return pc.equal(total_key(values), total_key(pa.repeat(wanted, 1))[0])


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
    found = np.full(len(lists), join.identity, dtype=np.bool_)
    if not len(others):
        return pa.array(found)
    for item in others:
        join(found, items.any(_item_mask(items, item)), out=found)
    return items.masked(found)


def _per_row(left: pa.Array, right: pa.Array, test: Callable[[Any, Any], bool]) -> pa.Array:
    if isinstance(left, pa.Scalar):
        left = pa.array([left.as_py()] * len(right), left.type)
    if isinstance(right, pa.Scalar):
        right = pa.array([right.as_py()] * len(left), right.type)
    if not is_list(left.type) or not is_list(right.type):
        raise pa.ArrowTypeError(f"{left.type} and {right.type} are not both lists")
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else test(a, b) for a, b in pairs], pa.bool_())


def list_equal(left: pa.Array, right: pa.Array | pa.Scalar) -> pa.Array:
    """Whether two lists have the same items in the same order."""
    return _per_row(left, right, lambda a, b: bool(a == b))


def array_element(lists: pa.Array, position: pa.Array | pa.Scalar) -> pa.Array:
    """The item at a position, from 1, or from -1 at the end; null where none exists."""
    items = _Items(lists)
    if isinstance(position, pa.Scalar):
        position = pa.repeat(position, len(lists))
    known = position.is_valid().to_numpy(zero_copy_only=False)
    place = pc.fill_null(position.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    index = np.where(place > 0, items.starts + place - 1, items.ends + place)
    found = known & (place != 0) & (index >= items.starts) & (index < items.ends)
    return items.values.take(pa.array(np.where(found, index, 0), mask=~found))


def array_length(lists: pa.Array) -> pa.Array:
    """The number of items in a list."""
    if not is_list(lists.type) and not at.is_map(lists.type):
        raise pa.ArrowTypeError(f"{lists.type} is not a list")
    return pc.list_value_length(lists).cast(pa.int64())


def empty(lists: pa.Array) -> pa.Array:
    """Whether a list has no items."""
    return pc.equal(array_length(lists), 0)


def array_position(lists: pa.Array, wanted: pa.Array | pa.Scalar) -> pa.Array:
    """The position of the first item that equals a value; null if none exists."""
    items = _Items(lists)
    each = wanted if isinstance(wanted, pa.Scalar) else wanted.take(pa.array(items.owners))
    mask = pc.fill_null(_equal(items.values, each), False).to_numpy(zero_copy_only=False)
    hits = np.flatnonzero(mask)
    first = np.full(len(lists), -1, dtype=np.int64)
    owners = items.owners[hits]
    first[owners[::-1]] = hits[::-1]  # of several items, the first is written last
    return pa.array(first - items.starts + 1, mask=first < 0)


def array_to_string(lists: pa.Array, separator: pa.Scalar) -> pa.Array:
    """The items that are not null, joined to one text."""
    items = _Items(lists).values.cast(pa.string())
    texts = pa.ListArray.from_arrays(pa.array(np.append(0, _Items(lists).ends), pa.int32()), items)
    joined = [separator.as_py().join(item for item in held if item is not None) for held in texts.to_pylist()]
    return pc.if_else(lists.is_valid(), pa.array(joined, pa.string()), pa.scalar(None, pa.string()))


def _extreme(greatest: bool) -> Callable[[pa.Array], pa.Array]:
    def compute(lists: pa.Array) -> pa.Array:
        items = _Items(lists)
        grouped = pa.table({"list": items.owners, "item": items.values})
        kind = "max" if greatest else "min"
        found = grouped.group_by("list").aggregate([("item", kind)])
        index = np.full(len(lists), -1, dtype=np.int64)
        index[found["list"].to_numpy()] = np.arange(len(found))
        return found[f"item_{kind}"].combine_chunks().take(pa.array(index, mask=index < 0))

    return compute


def make_array(*items: pa.Array | pa.Scalar) -> pa.Array:
    """A list of the values of a row."""
    length = next((len(item) for item in items if not isinstance(item, pa.Scalar)), 1)
    columns = [pa.repeat(item, length) if isinstance(item, pa.Scalar) else item for item in items]
    kind = next((column.type for column in columns if not at.is_null(column.type)), pa.null())
    rows = zip(*(column.cast(kind).to_pylist() for column in columns), strict=True)
    return pa.array([list(row) for row in rows] if columns else [[]] * length, pa.list_(kind))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "array_has": array_has,
    "array_has_any": array_has_any,
    "array_has_all": array_has_all,
    "array_element": array_element,
    "array_length": array_length,
    "array_position": array_position,
    "array_to_string": array_to_string,
    "array_max": _extreme(greatest=True),
    "array_min": _extreme(greatest=False),
    "empty": empty,
    "list_equal": list_equal,
    "make_array": make_array,
}
