"""Blob layout: large binaries outside the page, found through (position, size) pairs (format 2.1, blob)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_1 import mini_block
from lance_engine.errors import UnsupportedFeatureError


def page_maker(message: Any) -> Callable[..., kernels.Page]:
    if message.inner_layout.WhichOneof("layout") != "mini_block_layout":
        raise UnsupportedFeatureError("A blob page whose descriptors are not in a mini-block layout")
    make_descriptors = mini_block.page_maker(message.inner_layout.mini_block_layout)
    layers = bytes(message.layers)

    def make(rows: int, buffers: Sequence[tuple[int, int]]) -> kernels.Page:
        return kernels.blob_page(make_descriptors(rows=rows, buffers=buffers), buffers, layers, v2_0=False)

    return make


def describe(message: Any) -> str:
    return "blob"
