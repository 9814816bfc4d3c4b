"""Constant layout: every value null, or in 2.2 every value the same (format 2.1, constant)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lance_engine import kernels
from lance_engine.encodings import compressive
from lance_engine.encodings.v2_1.layers import layers_of


def page_maker(message: Any) -> Callable[..., kernels.Page]:
    return partial(
        kernels.constant_page,
        layers=layers_of(message),
        inline_value=message.inline_value if message.HasField("inline_value") else None,
        rep=_optional_block(message, "rep_compression"),
        def_=_optional_block(message, "def_compression"),
        num_rep=message.num_rep_values,
        num_def=message.num_def_values,
    )


def describe(message: Any) -> str:
    return "constant" if message.HasField("inline_value") else "constant(null)"


def _optional_block(message: Any, field: str) -> kernels.BlockDecoder | None:
    return compressive.block_decoder(getattr(message, field)) if message.HasField(field) else None
