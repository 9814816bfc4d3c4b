"""Splits nested Arrow arrays: a flat array and its repetition and definition levels per leaf column."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa

from lance_engine.errors import SchemaMismatchError
from lance_engine.kernels import LevelBuilder, Levels
from lance_engine.schema_tree import Field


@dataclass(frozen=True, slots=True)
class Leaf:
    """The values of one column over one range of rows; `array` has one element per value slot of `levels`.

    Below fixed-size lists of structs, levels and pages count `items_per_row` items for each row.
    """

    field: Field
    path: str
    array: pa.Array
    levels: Levels
    items_per_row: int = 1


def leaves_of(array: pa.Array, field: Field) -> list[Leaf]:
    """The leaves of a top-level column in column order.

    SchemaMismatchError when a null occurs in a field declared non-nullable.
    """
    leaves: list[Leaf] = []
    _descend(array, field, [field], LevelBuilder(len(array)), leaves)
    return leaves


def validity(array: pa.Array) -> pa.Buffer | None:
    """The validity bitmap, which starts at bit `array.offset`; None if there are no nulls."""
    if pa.types.is_null(array.type):
        return pa.py_buffer(bytes((array.offset + len(array) + 7) // 8))
    return array.buffers()[0] if array.null_count else None


def _descend(
    array: pa.Array, field: Field, path: list[Field], levels: LevelBuilder, leaves: list[Leaf]
) -> None:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if field.is_leaf:
        levels.add_item(validity(array), array.offset, len(array))
        finished = levels.finish()
        _check_nulls(finished, path)
        leaves.append(Leaf(field, _path_text(path), array, finished, _items_per_row(path)))
    elif pa.types.is_struct(array.type):
        levels.add_item(validity(array), array.offset, len(array))
        for number, child in enumerate(field.children):
            _descend(array.field(number), child, [*path, child], levels.clone(), leaves)
    elif pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        levels.add_fixed_size_list(validity(array), array.offset, len(array), size)
        items = array.values.slice(array.offset * size, len(array) * size)
        child = field.children[0]
        _descend(items, child, [*path, child], levels, leaves)
    else:
        items = array.values
        bits = 64 if pa.types.is_large_list(array.type) else 32
        start, stop, keep = levels.add_list(
            validity(array), array.buffers()[1], bits, array.offset, len(array), len(items)
        )
        items = items.slice(start, stop - start)
        if keep is not None:
            # Items under null lists are not stored, so the others are contiguous.
            items = items.filter(pa.array(np.asarray(keep).view(bool)))
        child = field.children[0]
        _descend(items, child, [*path, child], levels, leaves)


def _check_nulls(levels: Levels, path: list[Field]) -> None:
    for has_null, field in zip(levels.null_layers, reversed(path), strict=True):
        if has_null and not field.nullable:
            raise SchemaMismatchError(
                "Null value in a non-nullable column",
                column=_path_text(path[: path.index(field) + 1]),
                remedy="Remove the nulls, or make the field nullable",
            )


def _items_per_row(path: list[Field]) -> int:
    return prod(each.arrow_type.list_size for each in path if each.is_fixed_size_list_of_structs)


def _path_text(path: list[Field]) -> str:
    return ".".join(field.name for field in path)
