"""Flat: fixed-width values in one buffer, which may be compressed as a whole (format 2.0, flat)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext
from lance_engine.errors import UnsupportedFeatureError


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    scheme = message.compression.scheme
    if scheme in ("", "none"):
        scheme = ""
    elif scheme not in ("lz4", "zstd"):
        raise UnsupportedFeatureError(f"The compression '{scheme}' is not known")
    return kernels.array_flat(page.buffer(message.buffer), message.bits_per_value, scheme)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    scheme = message.compression.scheme
    name = f"flat{message.bits_per_value}"
    return f"{scheme}({name})" if scheme not in ("", "none") else name
