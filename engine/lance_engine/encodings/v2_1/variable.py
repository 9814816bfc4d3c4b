"""Variable: strings and binary values behind their offsets (format 2.1, variable)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    return kernels.variable(offset_bits(message))


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    return kernels.block_variable(offset_bits(message))


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return "variable"


def offset_bits(message: Any) -> int:
    """Width of the stored offsets: 32 or 64."""
    if message.HasField("values"):
        raise UnsupportedFeatureError("A variable encoding with a compression of its own")
    if message.offsets.WhichOneof("compression") != "flat":
        raise UnsupportedFeatureError("A variable encoding whose offsets are compressed")
    bits = int(message.offsets.flat.bits_per_value)
    if bits not in (32, 64):
        raise CorruptFileError(f"String offsets must be 32 or 64 bits wide, not {bits}")
    return bits
