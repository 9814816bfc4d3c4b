"""Full-zip pages: level and value of one entry side by side, for values too large for chunks.

Each entry starts with a control word of 0, 1, 2 or 4 bytes, ``repetition << bits_def | definition``. A
fixed-width value follows if the entry is visible (null or not). A variable-width value follows only if it is
really there, behind its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.errors import CorruptFileError

from reference import compressive
from reference.levels import LevelArrays, max_visible, parse_layers
from reference.sections import section, unsigned
from reference.values import Values


def control_bytes(bits: int) -> int:
    """The size of a control word with `bits` level bits."""
    if bits > 32:
        raise CorruptFileError(f"control words of {bits} bits")
    return 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4


def decode(layout: Any, buffers: list[bytes], length: int) -> tuple[LevelArrays, Values]:
    """A whole page of `length` rows: its levels and visible values."""
    layers = parse_layers(layout.layers)
    shown = max_visible(layers)
    width = control_bytes(layout.bits_rep + layout.bits_def)
    kind = layout.WhichOneof("details")
    if kind is None or not buffers:
        raise CorruptFileError("a full-zip page without value width or without data")
    if kind == "bits_per_value" and layout.bits_per_value % 8:
        raise CorruptFileError(f"full-zip values of {layout.bits_per_value} bits")
    data = buffers[0]
    position = 0
    starts = []
    repetition = []
    definition = []
    items = []
    for _ in range(layout.num_items):
        start = position
        word = unsigned(data, position, width, "control word") if width else 0
        position += width
        rep, level = word >> layout.bits_def, word & ((1 << layout.bits_def) - 1)
        if layout.bits_rep == 0 or rep == sum(layer.is_list for layer in layers):
            starts.append(start)
        repetition.append(rep)
        definition.append(level)
        has_lists = any(layer.is_list for layer in layers)
        if level > shown and has_lists:
            continue
        if kind == "bits_per_value":
            size = layout.bits_per_value // 8
        elif level:
            size = 0
        else:
            size = unsigned(data, position, layout.bits_per_offset // 8, "length of a value")
            position += layout.bits_per_offset // 8
        items.append(section(data, position, size, "full-zip value"))
        position += size
    if position != len(data):
        raise CorruptFileError(f"full-zip entries use {position} of {len(data)} bytes")
    if len(items) != layout.num_visible_items:
        raise CorruptFileError(f"{len(items)} full-zip values instead of {layout.num_visible_items}")
    if len(buffers) > 1:
        index_width, rest = divmod(len(buffers[1]), length + 1)
        if rest or index_width not in (1, 2, 4, 8):
            raise CorruptFileError(f"a repetition index of {len(buffers[1])} bytes for {length} rows")
        index = np.frombuffer(buffers[1], f"<u{index_width}").tolist()
        if index != [*starts, position]:
            raise CorruptFileError("the repetition index does not point to the rows")
    values: Values
    if kind == "bits_per_value":
        rows = np.frombuffer(b"".join(items), np.uint8).reshape(len(items), layout.bits_per_value // 8)
        values = compressive.decode_rows(layout.value_compression, rows)
    else:
        values = compressive.decode_items(layout.value_compression, items)
    arrays = LevelArrays(
        layers,
        np.array(repetition, np.uint16) if layout.bits_rep else None,
        np.array(definition, np.uint16) if layout.bits_def else None,
        len(repetition),
    )
    return arrays, values
