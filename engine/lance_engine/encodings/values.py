"""Flat Arrow arrays in the form that kernels take: a buffer, a width, an offset and a count."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.leaves import validity
from lance_engine.encodings.page import Buffer
from lance_engine.kernels import Levels

# Widths that bit-packing and run-length encoding support.
INTEGER_BITS = (8, 16, 32, 64)
_ENTROPY_VALUES = 64


@dataclass(frozen=True)
class FixedValues:
    """`count` values of `bits` each, starting at value `offset` of `buffer`."""

    buffer: Buffer
    bits: int
    offset: int
    count: int

    @property
    def place(self) -> tuple[Buffer, int, int, int]:
        """In the form that kernels take."""
        return self.buffer, self.bits, self.offset, self.count

    @property
    def nbytes(self) -> int:
        return (self.count * self.bits + 7) // 8

    @cached_property
    def statistics(self) -> tuple[int, int]:
        """The size in bytes of integers when bit-packed, and when run-length encoded."""
        return kernels.integer_statistics(*self.place)


@dataclass(frozen=True, slots=True)
class Strings:
    """Strings or binary values; symbol tables are tried for text."""

    input: kernels.VariableInput
    is_text: bool

    @property
    def nbytes(self) -> int:
        return self.input.total_bytes + (self.input.count + 1) * self.input.offset_bits // 8


def fixed_values(array: pa.Array) -> FixedValues:
    """The value buffer of a fixed-width array, addressable at the width of its values."""
    bits = array.type.bit_width
    buffer = array.buffers()[1]
    width = bits // 8 if bits in INTEGER_BITS else 1
    if buffer is not None and width and buffer.address % width:
        buffer = pa.py_buffer(buffer.to_pybytes())
    return FixedValues(buffer, bits, array.offset, len(array))


def without_nulls(values: FixedValues, levels: Levels) -> FixedValues:
    """The values with nulls replaced by neighbours, so that nulls do not increase the packed width."""
    if levels.valid_slots == levels.slots or values.bits % 8:
        return values
    filled = kernels.fill_nulls(values.buffer, values.bits, values.offset, levels)
    return FixedValues(filled, values.bits, 0, values.count)


def value_bytes(values: FixedValues) -> Buffer:
    """The bytes of exactly these values; not copied if they start at whole bytes."""
    if values.bits % 8:
        bits = np.unpackbits(np.frombuffer(values.buffer, np.uint8), bitorder="little")
        return np.packbits(bits[values.offset : values.offset + values.count], bitorder="little")
    width = values.bits // 8
    start = values.offset * width
    return memoryview(values.buffer).cast("B")[start : start + values.count * width]


def widen_bits(values: FixedValues) -> FixedValues:
    """One byte per bit, which is how full-zip pages store booleans."""
    bits = np.unpackbits(np.frombuffer(values.buffer, np.uint8), bitorder="little")
    return FixedValues(bits[values.offset : values.offset + values.count], 8, 0, values.count)


# Dimension, validity bitmap of the items if any is null, and its first bit.
ListLayer: TypeAlias = tuple[int, Any, int]


def list_layers(array: pa.Array, levels: Levels) -> tuple[list[ListLayer], FixedValues]:
    """The layers of a fixed-size list array, outermost first, and its innermost items."""
    layers: list[ListLayer] = []
    # Items in a null list are not null themselves; `visible` distinguishes them, with one flag per list.
    visible: np.ndarray | None = None
    if levels.valid_slots < levels.slots:
        visible = np.asarray(levels.null_slots()) == 0
    while pa.types.is_fixed_size_list(array.type):
        dimension = array.type.list_size
        items = array.values.slice(array.offset * dimension, len(array) * dimension)
        if isinstance(items, pa.ExtensionArray):
            items = items.storage
        bitmap = validity(items)
        if visible is not None:
            visible = np.repeat(visible, dimension)
        if bitmap is not None:
            valid = np.asarray(items.is_valid())
            if visible is not None and not (visible & ~valid).any():
                bitmap = None
            visible = valid if visible is None else visible & valid
        layers.append((dimension, bitmap, items.offset))
        array = items
    if pa.types.is_null(array.type):
        return layers, FixedValues(b"", 0, 0, len(array))
    return layers, fixed_values(array)


def strings_of(array: pa.Array, levels: Levels | None) -> Strings:
    """Values of variable width; `levels` mark the nulls."""
    _, offsets, data = array.buffers()
    bits = offset_bits(array.type)
    values = kernels.VariableInput(offsets, data, bits, array.offset, len(array), levels)
    return Strings(values, pa.types.is_string(array.type) or pa.types.is_large_string(array.type))


def offset_bits(arrow_type: pa.DataType) -> int:
    return 64 if pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type) else 32


def is_variable(arrow_type: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(arrow_type)
        or types.is_binary(arrow_type)
        or types.is_large_string(arrow_type)
        or types.is_large_binary(arrow_type)
    )


def byte_entropy(values: FixedValues) -> float:
    """Mean Shannon entropy in bits over the byte positions of the first values."""
    width = values.bits // 8
    sample = np.frombuffer(value_bytes(values), np.uint8)[: _ENTROPY_VALUES * width].reshape(-1, width)
    total = 0.0
    for position in range(width):
        counts = np.bincount(sample[:, position])
        shares = counts[counts > 0] / len(sample)
        total -= float((shares * np.log2(shares)).sum())
    return total / width
