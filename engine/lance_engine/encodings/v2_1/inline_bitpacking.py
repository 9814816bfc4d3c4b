"""In-line bit-packing: transposed blocks of 1024 values, each with its own width (format 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    _refuse_compressed(message)
    return kernels.inline_bitpacking(message.uncompressed_bits_per_value)


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    _refuse_compressed(message)
    return kernels.block_inline_bitpacking(message.uncompressed_bits_per_value)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"bitpacked{message.uncompressed_bits_per_value}"


def _refuse_compressed(message: Any) -> None:
    if message.HasField("values"):
        raise UnsupportedFeatureError("A bit-packing with a compression of its own")
