"""Binary: the ends of the values, nulls marked in them, and their bytes (format 2.0, binary)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_binary(inner(message.indices), inner(message.bytes), message.null_adjustment)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"binary({inner(message.bytes)})"
