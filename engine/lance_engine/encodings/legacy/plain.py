"""Plain: contiguous fixed-width values, booleans as a bitmap, lists as their items (format 0.1)."""

from __future__ import annotations

from math import prod

from lance_engine import kernels
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.format.legacy import Page


def decoder(page: Page, context: PageContext) -> kernels.ArrayDecoder:
    shape = context.shape
    bits = 1 if shape.kind == "bits" else 8 * shape.width
    values = kernels.array_flat(context.buffer(page, bits * prod(shape.dims)), bits, "")
    for dimension in reversed(shape.dims):
        values = kernels.array_fixed_size_list(dimension, values)
    return values
