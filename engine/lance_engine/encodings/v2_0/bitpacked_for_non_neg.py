"""Bit-packed for non-negative values: transposed blocks of 1024 (format 2.0, bit-packed for non-negative)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_bitpacked_for_non_neg(
        page.buffer(message.buffer), message.compressed_bits_per_value, message.uncompressed_bits_per_value
    )


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"bitpacked{message.uncompressed_bits_per_value}to{message.compressed_bits_per_value}"
