"""Unknown message fields: kept as bytes, so that they are written back."""

from __future__ import annotations

import struct
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet


def unknown_fields(message: Any) -> bytes:
    """The unknown fields of a message, serialised; groups, which are obsolete, are left out."""
    parts = []
    for field in UnknownFieldSet(message):
        key = _varint(field.field_number << 3 | field.wire_type)
        match field.wire_type:
            case 0:
                parts.append(key + _varint(field.data))
            case 1:
                parts.append(key + struct.pack("<Q", field.data))
            case 2:
                parts.append(key + _varint(len(field.data)) + field.data)
            case 5:
                parts.append(key + struct.pack("<I", field.data))
    return b"".join(parts)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
