"""Dictionary: codes into the items of the page; nulls are items (format 2.0, dictionary)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_0.context import PageContext
from lance_engine.errors import UnsupportedFeatureError


def decoder(
    message: Any, page: PageContext, inner: Callable[[Any], kernels.ArrayDecoder]
) -> kernels.ArrayDecoder:
    return kernels.array_dictionary(
        indices=inner(message.indices),
        index_width=_index_bits(message.indices) // 8,
        items=inner(message.items),
        count=message.num_dictionary_items,
        shifted=not page.is_dictionary,
        kind=page.shape.kind,
        width=page.shape.width,
    )


def describe(message: Any, inner: Callable[[Any], str]) -> str:
    return f"dictionary[{message.num_dictionary_items}]({inner(message.indices)})"


def _index_bits(encoding: Any) -> int:
    name = encoding.WhichOneof("array_encoding")
    if name == "nullable" and encoding.nullable.WhichOneof("nullability") == "no_nulls":
        return _index_bits(encoding.nullable.no_nulls.values)
    if name == "flat":
        return int(encoding.flat.bits_per_value)
    if name in ("bitpacked", "bitpacked_for_non_neg"):
        return int(getattr(encoding, name).uncompressed_bits_per_value)
    raise UnsupportedFeatureError(f"Dictionary indices encoded as '{name}'")
