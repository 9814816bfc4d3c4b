"""Blob pages: large binaries stored outside the page, which keeps (position, size) of each.

The inner layout is a page of packed structs of two u64. Size > 0: that many bytes at the absolute file
position. Both 0: an empty value. Size 0 and position > 0: no value, but the definition level (bits 16 to 31)
and the repetition level (bits 0 to 15) of the entry.
"""

from __future__ import annotations

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.levels import Layer, LevelArrays, visible
from reference.sections import section
from reference.values import Fixed, Struct, Values, Variable


def decode(data: bytes, layers: list[Layer], descriptors: Values) -> tuple[LevelArrays, Values]:
    """Fetch the blobs of a page from the bytes of the whole file."""
    if not isinstance(descriptors, Struct) or len(descriptors.fields) != 2:
        raise CorruptFileError("blob descriptors have two fields")
    columns = [field.integers().tolist() for field in descriptors.fields if isinstance(field, Fixed)]
    blobs = []
    repetition = []
    definition = []
    for position, size in zip(*columns, strict=True):
        special = size == 0 and position != 0
        repetition.append(position & 0xFFFF if special else 0)
        definition.append(position >> 16 & 0xFFFF if special else 0)
        blobs.append(section(data, position, size, "blob") if size else b"")
    has_lists = any(layer.is_list for layer in layers)
    arrays = LevelArrays(
        layers,
        np.array(repetition, np.uint16) if has_lists else None,
        np.array(definition, np.uint16),
        len(blobs),
    )
    shown = visible(arrays)
    return arrays, Variable([blob for blob, keep in zip(blobs, shown, strict=True) if keep])
