"""Constant: one value for all rows (format 2.0, constant); pylance neither writes nor reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_constant(message.value)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return "constant"
