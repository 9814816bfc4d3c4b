"""Fixed-size lists of flat items, with a validity bitmap per layer whose items may be null (format 2.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lance_engine import kernels
from lance_engine.errors import UnsupportedFeatureError


class Layers(NamedTuple):
    """Nested fixed-size lists flattened: outermost first, and bits of one item (0: no items are stored)."""

    dims: list[int]
    has_validity: list[bool]
    bits_per_item: int


def value_decoder(message: Any, inner: Callable[[Any], kernels.ValueDecoder]) -> kernels.ValueDecoder:
    layers = flatten(message)
    return kernels.fixed_size_list(layers.dims, layers.has_validity, layers.bits_per_item)


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"fixed-size-list[{message.items_per_value}]({inner(message.values)})"


def flatten(message: Any) -> Layers:
    """Walk down to the items, which are flat or, when all of them are null, missing."""
    dims = [message.items_per_value]
    has_validity = [message.has_validity]
    values = message.values
    while values.WhichOneof("compression") == "fixed_size_list":
        dims.append(values.fixed_size_list.items_per_value)
        has_validity.append(values.fixed_size_list.has_validity)
        values = values.fixed_size_list.values
    kind = values.WhichOneof("compression")
    if kind == "constant" and not values.constant.HasField("value"):
        return Layers(dims, has_validity, 0)
    if kind != "flat":
        raise UnsupportedFeatureError(f"A fixed-size list of '{kind}' items")
    return Layers(dims, has_validity, values.flat.bits_per_value)
