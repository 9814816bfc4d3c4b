"""Encodes consecutive rows of a column as pages, each with the layout that suits its values.

The table lists the alternatives, `candidate` computes their costs, and field metadata can override the
choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lance_engine.encodings.leaves import Leaf, leaves_of
from lance_engine.encodings.page import Page
from lance_engine.encodings.profile import BALANCED, Profile
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.table import TABLE
from lance_engine.schema_tree import Field


def encode_column(
    array: pa.Array,
    field: Field,
    version: tuple[int, int],
    leaves: Sequence[Leaf] | None = None,
    profile: Profile = BALANCED,
) -> list[list[Page]]:
    """Encode consecutive rows of a top-level column: for each leaf column in order, its pages.

    A leaf usually gets one page; long runs of empty and null lists require more. `leaves` are those of the
    array if the caller already has them.
    """
    leaves = leaves_of(array, field) if leaves is None else leaves
    return [_leaf_pages(array, field, number, leaf, version, profile) for number, leaf in enumerate(leaves)]


def _leaf_pages(
    array: pa.Array, field: Field, number: int, leaf: Leaf, version: tuple[int, int], profile: Profile
) -> list[Page]:
    levels = leaf.levels
    context = PageContext(leaf, version, profile, Settings.of(leaf.field, field), TABLE)
    # Chunks contain at least two values and all entries between them, and the number of levels in a chunk is
    # limited: the page is split until no run without values comes near that limit. A single row that still
    # exceeds it uses the full-zip layout.
    if levels.valid_slots == 0 or levels.longest_invisible_run * 4 <= levels.budget:
        return [_page(context)]
    if len(array) == 1:
        return [_page(replace(context, must_zip=True))]
    half = len(array) // 2
    pages: list[Page] = []
    for part in (array.slice(0, half), array.slice(half)):
        pages += _leaf_pages(part, field, number, leaves_of(part, field)[number], version, profile)
    return pages


def _page(context: PageContext) -> Page:
    pages = (kind.page(context) for kind in context.table.pages)
    return next(page for page in pages if page is not None)
