"""Packed structs: the children of a row side by side.

Fixed-width children make mini-block rows without any padding. As soon as one child has variable width the
struct is a variable-width full-zip value: fixed children as their bytes, variable ones behind their length.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lance_engine.errors import CorruptFileError

from reference.sections import section, unsigned
from reference.values import Bytes, Fixed, Struct


def split_rows(rows: Bytes, bits_per_value: list[int]) -> Struct:
    """Cut uint8[n, bytes per row] into the children of `bits_per_value`."""
    if any(bits % 8 or bits == 0 for bits in bits_per_value) or sum(bits_per_value) != rows.shape[1] * 8:
        raise CorruptFileError(f"children of {bits_per_value} bits in a packed row of {rows.shape[1]} bytes")
    stops = np.cumsum([bits // 8 for bits in bits_per_value])
    columns = np.split(rows, stops[:-1], axis=1)
    return Struct(
        len(rows),
        tuple(
            Fixed(bits, np.ascontiguousarray(column))
            for bits, column in zip(bits_per_value, columns, strict=True)
        ),
    )


def split_variable_row(row: bytes, fields: Any) -> list[bytes]:
    """The bytes of each child of one VariablePackedStruct value. A null struct has no bytes at all."""
    parts = []
    position = 0
    for field in fields:
        if field.WhichOneof("layout") == "bits_per_value":
            size = int(field.bits_per_value) // 8
            if not row:
                parts.append(bytes(size))
                continue
        else:
            if not row:
                parts.append(b"")
                continue
            width = int(field.bits_per_length) // 8
            size = unsigned(row, position, width, "length of a packed child")
            position += width
        parts.append(section(row, position, size, "packed child"))
        position += size
    if position != len(row):
        raise CorruptFileError(f"a packed struct uses {position} of its {len(row)} bytes")
    return parts
