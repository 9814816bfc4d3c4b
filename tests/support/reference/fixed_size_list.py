"""Fixed-size lists as leaves: nested FixedSizeList layers over Flat, with the validity of the items at hand.

`has_validity` of a layer says that the *items* of that layer may be null. A chunk keeps one bitmap per such
layer (outermost first) as a buffer of its own before the data; a full-zip row starts with the bitmaps of its
own items, each padded to whole bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

from reference import flat
from reference.sections import bitmap
from reference.values import Bools, Bytes, Fixed, FixedSizeList, Nulls, Values


def layers_of(encoding: Any) -> tuple[list[tuple[int, bool]], Any]:
    """The (dimension, has_validity) of each nested layer, outermost first, and the innermost encoding."""
    layers = []
    while encoding.WhichOneof("compression") == "fixed_size_list":
        layer = encoding.fixed_size_list
        if layer.items_per_value == 0:
            raise CorruptFileError("a fixed-size list of dimension 0")
        layers.append((int(layer.items_per_value), bool(layer.has_validity)))
        encoding = layer.values
    return layers, encoding


def _nest(layers: list[tuple[int, bool]], validity: list[Bools | None], items: Values, count: int) -> Values:
    values = items
    sizes = np.cumprod([count] + [dimension for dimension, _ in layers])
    for depth in reversed(range(len(layers))):
        values = FixedSizeList(int(sizes[depth]), layers[depth][0], values, validity[depth])
    return values


def decode_chunk(encoding: Any, buffers: list[bytes], count: int) -> Values:
    """`count` lists of a mini-block chunk."""
    layers, inner = layers_of(encoding)
    if inner.WhichOneof("compression") != "flat":
        raise UnsupportedFeatureError("fixed-size list over anything but flat values in a mini-block page")
    remaining = list(buffers)
    items = count
    validity: list[Bools | None] = []
    for dimension, has_validity in layers:
        items *= dimension
        validity.append(bitmap(remaining.pop(0), items, "item validity") if has_validity else None)
    return _nest(layers, validity, flat.decode(remaining[0], int(inner.flat.bits_per_value), items), count)


def decode_rows(encoding: Any, rows: Bytes) -> Values:
    """Full-zip rows, uint8[n, bytes per row]."""
    layers, inner = layers_of(encoding)
    count = len(rows)
    position = 0
    items = 1
    validity: list[Bools | None] = []
    for dimension, has_validity in layers:
        items *= dimension
        if not has_validity:
            validity.append(None)
            continue
        size = (items + 7) // 8
        bits = np.unpackbits(rows[:, position : position + size], axis=1, bitorder="little")
        if bits.shape[1] < items:
            raise CorruptFileError("a full-zip row is too short for the validity of its items")
        validity.append(bits[:, :items].astype(np.bool_).reshape(-1))
        position += size
    kind = inner.WhichOneof("compression")
    data = np.ascontiguousarray(rows[:, position:])
    values: Values
    if kind == "constant" and not inner.constant.HasField("value"):
        values = Nulls(count * items)
    elif kind == "flat" and inner.flat.bits_per_value == 1:
        if items % 8 or data.shape[1] * 8 != items:
            raise CorruptFileError("full-zip rows of bits must fill whole bytes")
        values = Fixed(1, np.unpackbits(data, axis=1, bitorder="little").astype(np.bool_).reshape(-1))
    elif kind == "flat":
        if data.shape[1] * 8 != items * inner.flat.bits_per_value:
            raise CorruptFileError("the width of a full-zip row contradicts its fixed-size list")
        values = flat.decode(data.tobytes(), int(inner.flat.bits_per_value), count * items)
    else:
        raise UnsupportedFeatureError(f"fixed-size list over {kind} in a full-zip page")
    return _nest(layers, validity, values, count)
