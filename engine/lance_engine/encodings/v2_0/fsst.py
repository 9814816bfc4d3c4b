"""FSST: strings as codes of up to 255 short symbols, each string coded alone (format 2.0, FSST)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_fsst(inner(message.binary), message.symbol_table)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"fsst({inner(message.binary)})"
