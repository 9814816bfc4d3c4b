"""Byte-stream split: all first bytes, then all second bytes, and so on (format 2.1, byte-stream split)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    if message.values.WhichOneof("compression") != "flat":
        raise UnsupportedFeatureError("A byte-stream split of values that are not flat")
    return kernels.byte_stream_split(message.values.flat.bits_per_value)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"byte-stream-split({inner(message.values)})"
