"""Packed struct: the fields of a row side by side (format 2.0, packed struct)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_flat(page.buffer(message.buffer), 8 * page.shape.width, "")


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"packed-struct[{len(message.inner)}]"
