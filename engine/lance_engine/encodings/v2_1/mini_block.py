"""Mini-block layout: small values in compressed chunks with an index of chunks (format 2.1, mini-block)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lance_engine import kernels
from lance_engine.encodings import compressive
from lance_engine.encodings.v2_1.layers import layers_of
from lance_engine.errors import UnsupportedFeatureError


def page_maker(message: Any) -> Callable[..., kernels.Page]:
    if message.repetition_index_depth > 1:
        raise UnsupportedFeatureError(f"A repetition index of depth {message.repetition_index_depth}")
    dictionary = _optional_block(message, "dictionary")
    return partial(
        kernels.mini_block_page,
        layers=layers_of(message),
        rep=_optional_block(message, "rep_compression"),
        def_=_optional_block(message, "def_compression"),
        values=compressive.value_decoder(message.value_compression),
        dictionary=dictionary,
        dictionary_items=message.num_dictionary_items,
        index_width=compressive.value_bits(message.value_compression) // 8 if dictionary else 0,
        num_buffers=message.num_buffers,
        num_items=message.num_items,
        large_chunks=message.has_large_chunk,
        repetition_index=message.repetition_index_depth > 0,
    )


def describe(message: Any) -> str:
    values = compressive.describe(message.value_compression)
    if message.HasField("dictionary"):
        values = f"dictionary[{message.num_dictionary_items}]({values})"
    return f"mini-block({values})"


def _optional_block(message: Any, field: str) -> kernels.BlockDecoder | None:
    return compressive.block_decoder(getattr(message, field)) if message.HasField(field) else None
