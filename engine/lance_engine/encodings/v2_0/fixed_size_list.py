"""Fixed-size list: dimension items per row (format 2.0, fixed-size list)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_fixed_size_list(message.dimension, inner(message.items))


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"fixed-size-list[{message.dimension}]({inner(message.items)})"
