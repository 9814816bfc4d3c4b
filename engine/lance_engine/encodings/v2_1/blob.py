"""Blob layout: large binaries outside the page, found through (position, size) pairs (format 2.1, blob)."""

from __future__ import annotations

from typing import Any

from lance_engine import kernels
from lance_engine.encodings.v2_1 import mini_block
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.format.container import PageMetadata


def page(message: Any, metadata: PageMetadata) -> kernels.Page:
    if message.inner_layout.WhichOneof("layout") != "mini_block_layout":
        raise UnsupportedFeatureError("A blob page whose descriptors are not in a mini-block layout")
    descriptors = mini_block.page(message.inner_layout.mini_block_layout, metadata)
    return kernels.blob_page(descriptors, list(metadata.buffers), bytes(message.layers), v2_0=False)


def describe(message: Any) -> str:
    return "blob"
