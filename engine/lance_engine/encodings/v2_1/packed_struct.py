"""Packed struct: the fixed-width fields of a row side by side (format 2.1, packed structs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    if message.values.WhichOneof("compression") != "flat":
        raise UnsupportedFeatureError("A packed struct whose rows are not flat")
    if any(bits % 8 for bits in message.bits_per_value):
        raise UnsupportedFeatureError("A packed struct with fields that are not whole bytes")
    if sum(message.bits_per_value) != message.values.flat.bits_per_value:
        raise CorruptFileError("The fields of a packed struct do not add up to its rows")
    return inner(message.values)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"packed-struct[{len(message.bits_per_value)}]"
