"""FSST: strings as codes of up to 255 short symbols, each string coded alone (format 2.1, FSST)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_1 import variable
from lance_engine.errors import UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    if message.values.WhichOneof("compression") != "variable":
        raise UnsupportedFeatureError("An FSST encoding over something else than variable values")
    return kernels.fsst(message.symbol_table, variable.offset_bits(message.values.variable))


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"fsst({inner(message.values)})"
