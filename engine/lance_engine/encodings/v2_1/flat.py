"""Flat: fixed-width values one after the other, booleans as a bitmap (format 2.1, flat)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    _refuse_compressed(message)
    return kernels.flat(message.bits_per_value)


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    _refuse_compressed(message)
    return kernels.block_flat(message.bits_per_value)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"flat{message.bits_per_value}"


def _refuse_compressed(message: Any) -> None:
    if message.HasField("data"):
        raise UnsupportedFeatureError("A flat encoding with a compression of its own")
