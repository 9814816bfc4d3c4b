"""Var-binary: strings and binary values, with their positions in the file (format 0.1).

Nulls are not stored: an empty value of a nullable column reads as null.
"""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.format.legacy import Page

_POSITION_BITS = 64


def decoder(page: Page, context: PageContext) -> kernels.ArrayDecoder:
    positions = context.buffer(page._replace(length=page.length + 1), _POSITION_BITS)
    return kernels.legacy_var_binary(positions, context.nullable)
