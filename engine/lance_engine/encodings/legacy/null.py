"""Null: a column without values stores nothing (format 0.1)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.legacy.context import PageContext
from lance_engine.format.legacy import Page


def decoder(page: Page, context: PageContext) -> kernels.ArrayDecoder:
    return kernels.array_all_null()
