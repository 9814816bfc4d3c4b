"""Run-length encoding: values and the lengths of their runs in two buffers (format 2.1, RLE)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    return kernels.rle(_value_bits(message))


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    return kernels.block_rle(_value_bits(message))


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"rle({inner(message.values)})"


def _value_bits(message: Any) -> int:
    flat = message.values.WhichOneof("compression") == message.run_lengths.WhichOneof("compression") == "flat"
    if not flat or message.run_lengths.flat.bits_per_value != 8:
        raise UnsupportedFeatureError("A run-length encoding that is not of flat values and 8-bit lengths")
    return int(message.values.flat.bits_per_value)
