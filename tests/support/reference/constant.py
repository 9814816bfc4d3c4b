"""Constant pages: every value is null, or (2.2) every valid value is the same scalar.

The buffers tell the forms apart. All null: none, or raw repetition and definition levels. Scalar: inline in
the message or page buffer 0, followed by the levels if there are any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.levels import LevelArrays, Levels, parse_layers, visible
from reference.mini_block import decode_levels
from reference.sections import section, unsigned
from reference.values import Fixed, Nulls, Values, Variable


def _levels(encoding: Any, count: int, data: bytes) -> Levels | None:
    if encoding is not None:
        return decode_levels(encoding, data, count)
    if len(data) % 2:
        raise CorruptFileError("raw levels are 16-bit integers")
    return np.frombuffer(data, "<u2") if data else None


def parse_scalar(data: bytes) -> list[bytes]:
    """An out-of-line scalar: u32 number of Arrow buffers, u32 size of each, the buffers of an array of length
    1.
    """
    count = unsigned(data, 0, 4, "number of scalar buffers")
    section(data, 4, 4 * count, "sizes of scalar buffers")
    sizes = [unsigned(data, 4 + 4 * index, 4, "size of a scalar buffer") for index in range(count)]
    position = 4 + 4 * count
    buffers = []
    for size in sizes:
        buffers.append(section(data, position, size, "scalar buffer"))
        position += size
    return buffers


def _repeat(buffers: list[bytes], bits: int | None, count: int) -> Values:
    """`bits` is the width of the Arrow type, None for variable width."""
    if bits is None:
        offsets_and_bytes = buffers[-2:]
        if len(offsets_and_bytes) != 2 or len(offsets_and_bytes[0]) not in (8, 16):
            raise CorruptFileError("a constant string needs two offsets and its bytes")
        width = len(offsets_and_bytes[0]) // 2
        start, stop = (unsigned(offsets_and_bytes[0], at, width, "offset") for at in (0, width))
        return Variable([section(offsets_and_bytes[1], start, stop - start, "constant string")] * count)
    if len(buffers) != 1 or len(buffers[0]) != (bits + 7) // 8:
        raise CorruptFileError(f"a constant of {list(map(len, buffers))} bytes for {bits}-bit values")
    if bits == 1:
        return Fixed(1, np.full(count, bool(buffers[0][0] & 1)))
    return Fixed(bits, np.tile(np.frombuffer(buffers[0], np.uint8), (count, 1)))


def decode(layout: Any, buffers: list[bytes], length: int, bits: int | None) -> tuple[LevelArrays, Values]:
    """A whole page of `length` rows; `bits` is the width of the Arrow type, None for variable width."""
    layers = parse_layers(layout.layers)
    inline = layout.HasField("inline_value")
    scalar: list[bytes] | None = None
    if inline:
        scalar = [layout.inline_value]
    elif len(buffers) in (1, 3):
        scalar = parse_scalar(buffers[0])
        buffers = buffers[1:]
    if len(buffers) not in (0, 2):
        raise CorruptFileError(f"a constant page with {len(buffers)} level buffers")
    repetition = definition = None
    if buffers:
        rep_encoding = layout.rep_compression if layout.HasField("rep_compression") else None
        def_encoding = layout.def_compression if layout.HasField("def_compression") else None
        repetition = _levels(rep_encoding, int(layout.num_rep_values), buffers[0])
        definition = _levels(def_encoding, int(layout.num_def_values), buffers[1])
    elif scalar is None:
        # The simple form has no levels at all: every row is null.
        return LevelArrays(layers, None, np.ones(length, np.uint16), length), Nulls(length)
    known = repetition if repetition is not None else definition
    count = length if known is None else len(known)
    if definition is not None and len(definition) != count:
        raise CorruptFileError(f"{count} repetition levels and {len(definition)} definition levels")
    arrays = LevelArrays(layers, repetition, definition, count)
    slots = int(visible(arrays).sum())
    return arrays, Nulls(slots) if scalar is None else _repeat(scalar, bits, slots)
