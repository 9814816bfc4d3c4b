"""General compression: LZ4 or zstd over the first buffer of another encoding (format 2.1, general)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError

_SCHEMES = {1: "lz4", 2: "zstd"}


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    return kernels.general(scheme(message), inner(message.values))


def block_decoder(message: Any, inner: Callable[[Any], kernels.BlockDecoder]) -> kernels.BlockDecoder:
    return kernels.block_general(scheme(message), inner(message.values))


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"{scheme(message)}({inner(message.values)})"


def scheme(message: Any) -> str:
    """``lz4`` or ``zstd``."""
    name = _SCHEMES.get(message.compression.scheme)
    if name is None:
        raise UnsupportedFeatureError(f"Compression scheme number {message.compression.scheme} is not known")
    return name
