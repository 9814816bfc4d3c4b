"""Decoded values and slots to Arrow arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance_engine.errors import CorruptFileError

from reference.levels import FixedSizeLists, Lists, Slots
from reference.values import (
    Bools,
    Dictionary,
    Fixed,
    FixedSizeList,
    Nulls,
    Struct,
    Values,
    Variable,
)


def _buffer(bits: npt.NDArray[Any]) -> Any:
    return pa.py_buffer(np.packbits(bits, bitorder="little").tobytes())


def _validity(validity: Bools | None) -> Any:
    return None if validity is None else _buffer(validity)


def is_variable(arrow_type: pa.DataType) -> bool:
    """Whether the type is a string or binary one."""
    tests = (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    return any(test(arrow_type) for test in tests)


def offset_dtype(arrow_type: pa.DataType) -> str:
    """The offset type of a list, string or binary type."""
    tests = (pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_large_list)
    return "<i8" if any(test(arrow_type) for test in tests) else "<i4"


def leaf_array(values: Values, validity: Bools | None, arrow_type: pa.DataType) -> pa.Array:
    """The array of a leaf: its visible values with the validity of its layer."""
    count = len(values)
    if validity is not None and len(validity) != count:
        raise CorruptFileError(f"{count} values, levels for {len(validity)}")
    if isinstance(arrow_type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(
            arrow_type, leaf_array(values, validity, arrow_type.storage_type)
        )
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields == 0:
        return pa.Array.from_buffers(arrow_type, count, [None])
    if isinstance(values, Nulls):
        return pa.nulls(count, arrow_type)
    if isinstance(values, Dictionary):
        if pa.types.is_dictionary(arrow_type):
            indices = leaf_array(values.indices, validity, arrow_type.index_type)
            return pa.DictionaryArray.from_arrays(
                indices, leaf_array(values.items, None, arrow_type.value_type)
            )
        return leaf_array(_look_up(values), validity, arrow_type)
    if pa.types.is_dictionary(arrow_type):
        return leaf_array(values, validity, arrow_type.value_type).dictionary_encode().cast(arrow_type)
    if isinstance(values, Fixed):
        return _fixed_array(values, validity, arrow_type)
    if isinstance(values, Variable) and is_variable(arrow_type):
        offsets = np.cumsum([0, *map(len, values.items)]).astype(offset_dtype(arrow_type))
        buffers = [_validity(validity), pa.py_buffer(offsets.tobytes()), pa.py_buffer(b"".join(values.items))]
        return pa.Array.from_buffers(arrow_type, count, buffers)
    children: list[pa.Array] = []
    if isinstance(values, FixedSizeList) and pa.types.is_fixed_size_list(arrow_type):
        if values.dimension != arrow_type.list_size:
            raise CorruptFileError(f"lists of {values.dimension} items in a column of {arrow_type}")
        children = [leaf_array(values.items, values.validity, arrow_type.value_type)]
    elif isinstance(values, Struct) and pa.types.is_struct(arrow_type):
        if len(values.fields) != arrow_type.num_fields:
            raise CorruptFileError(f"{len(values.fields)} packed children in a column of {arrow_type}")
        types = [arrow_type.field(index).type for index in range(arrow_type.num_fields)]
        children = [leaf_array(child, None, type_) for child, type_ in zip(values.fields, types, strict=True)]
    else:
        raise CorruptFileError(f"{type(values).__name__} values in a column of {arrow_type}")
    return pa.Array.from_buffers(arrow_type, count, [_validity(validity)], children=children)


def _look_up(values: Dictionary) -> Values:
    indices = values.indices.integers()
    if isinstance(values.items, Fixed):
        return Fixed(values.items.bits, values.items.data[indices])
    if isinstance(values.items, Variable):
        return Variable([values.items.items[index] for index in indices])
    raise CorruptFileError(f"a dictionary of {type(values.items).__name__}")


def _fixed_array(values: Fixed, validity: Bools | None, arrow_type: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(arrow_type) and values.bits in (1, 8):
        bits = values.data if values.bits == 1 else values.data[:, 0] != 0
        return pa.Array.from_buffers(arrow_type, len(values), [_validity(validity), _buffer(bits)])
    if is_variable(arrow_type) or pa.types.is_nested(arrow_type) or arrow_type.bit_width != values.bits:
        raise CorruptFileError(f"{values.bits}-bit values in a column of {arrow_type}")
    data = pa.py_buffer(values.data.tobytes())
    return pa.Array.from_buffers(arrow_type, len(values), [_validity(validity), data])


def nested_array(slots: Slots, children: list[pa.Array], arrow_type: pa.DataType) -> pa.Array:
    """The array of a struct, list, map or fixed-size list of structs over its finished children."""
    if isinstance(slots, Lists):
        if slots.offsets[-1] != len(children[0]):
            raise CorruptFileError(f"lists of {slots.offsets[-1]} items over {len(children[0])}")
        offsets = pa.py_buffer(slots.offsets.astype(offset_dtype(arrow_type)).tobytes())
        buffers = [_validity(slots.validity), offsets]
        return pa.Array.from_buffers(arrow_type, slots.count, buffers, children=children)
    expected = slots.count * (slots.dimension if isinstance(slots, FixedSizeLists) else 1)
    if any(len(child) != expected for child in children):
        raise CorruptFileError(f"children of {list(map(len, children))} slots instead of {expected}")
    return pa.Array.from_buffers(arrow_type, slots.count, [_validity(slots.validity)], children=children)
