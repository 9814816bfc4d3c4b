"""Nullable: values with a validity bitmap, without one, or nothing but nulls (format 2.0, nullable)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext
from lance_engine.errors import UnsupportedFeatureError


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    match message.WhichOneof("nullability"):
        case "no_nulls":
            return inner(message.no_nulls.values)
        case "some_nulls":
            return kernels.array_nullable(
                inner(message.some_nulls.validity), inner(message.some_nulls.values)
            )
        case "all_nulls":
            return kernels.array_all_null()
    raise UnsupportedFeatureError("A page says in an unknown way which values are null")


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    match message.WhichOneof("nullability"):
        case "no_nulls":
            return inner(message.no_nulls.values)
        case "some_nulls":
            return f"nullable({inner(message.some_nulls.values)})"
    return "null"
