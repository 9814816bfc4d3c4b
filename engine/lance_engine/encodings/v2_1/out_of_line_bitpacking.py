"""Out-of-line bit-packing: one width for all blocks, kept in the message (format 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    if message.values.WhichOneof("compression") != "flat":
        raise UnsupportedFeatureError("An out-of-line bit-packing whose values are not flat")
    packed_bits = message.values.flat.bits_per_value
    return kernels.block_out_of_line_bitpacking(message.uncompressed_bits_per_value, packed_bits)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"bitpacked{message.uncompressed_bits_per_value}to{message.values.flat.bits_per_value}"
