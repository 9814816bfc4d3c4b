"""Strings or binary values that all have the same length (format 2.0, fixed-size binary)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_fixed_size_binary(inner(message.bytes), message.byte_width)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"fixed-size-binary[{message.byte_width}]"
