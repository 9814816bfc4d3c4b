"""Bit-packed: a plain stream of narrow values, signed or not (format 2.0, bit-packed)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_bitpacked(
        page.buffer(message.buffer),
        message.compressed_bits_per_value,
        message.uncompressed_bits_per_value,
        message.signed,
    )


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"bitpacked{message.uncompressed_bits_per_value}to{message.compressed_bits_per_value}"
