"""Variable packed struct: the fields of a row side by side, some behind their length (format 2.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine.encodings.v2_1 import fixed_size_list
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

# Bytes of a field of fixed width, or bytes of its length; compression and symbol table of the value; the
# dimensions of fixed-size lists, and whether validity of their items stands in front.
PackedField = tuple[int, int, str, bytes, list[int], list[bool]]


def packed_fields(message: Any, variable_codec: Callable[[Any], tuple[str, bytes]]) -> list[PackedField]:
    """What each field of a row looks like; `variable_codec` tells how single strings are compressed."""
    return [_packed_field(field, variable_codec) for field in message.fields]


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    fields = ", ".join(inner(field.value) for field in message.fields)
    return f"packed-struct[{len(message.fields)}]({fields})"


# Rows of 512 MiB are more than a batch may hold.
_MOST_BITS = 1 << 32


def _packed_field(field: Any, variable_codec: Callable[[Any], tuple[str, bytes]]) -> PackedField:
    bits = int(getattr(field, field.WhichOneof("layout") or "bits_per_value"))
    if bits > _MOST_BITS:
        raise CorruptFileError("A field of a packed struct is impossibly wide")
    if bits % 8:
        raise UnsupportedFeatureError("A packed struct with fields that are not whole bytes")
    if field.WhichOneof("layout") == "bits_per_length":
        return (0, bits // 8, *variable_codec(field.value), [], [])
    layers = _layers(field.value)
    item_bits, validity_bits, items = layers.bits_per_item, 0, 1
    for dimension, has_validity in zip(layers.dims, layers.has_validity, strict=True):
        items *= dimension
        validity_bits += -(-items // 8) * 8 if has_validity else 0
    if bits != items * item_bits + validity_bits:
        raise CorruptFileError("A field of a packed struct contradicts its width")
    return (bits - validity_bits) // 8, 0, "plain", b"", layers.dims, layers.has_validity


def _layers(encoding: Any) -> fixed_size_list.Layers:
    kind = encoding.WhichOneof("compression")
    if kind == "flat":
        return fixed_size_list.Layers([], [], int(encoding.flat.bits_per_value))
    if kind != "fixed_size_list":
        raise UnsupportedFeatureError(f"A packed struct with a field of fixed-width '{kind}' values")
    layers = fixed_size_list.flatten(encoding.fixed_size_list)
    if not layers.bits_per_item:
        raise UnsupportedFeatureError("A packed struct with lists of nothing but nulls")
    return layers
