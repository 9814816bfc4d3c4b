"""Encodes consecutive rows of a column as pages, each stored the way that suits its own values.

Order of trial: nothing but nulls; then by kind of value. Modules named after the kinds list the candidates,
`lance_engine.write.candidate` weighs them, and the field's metadata may decide instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import EncodedPage, Page
from lance_engine.errors import UnsupportedTypeError
from lance_engine.schema_tree import Field
from lance_engine.write.blob import blob_page, blob_v2_page
from lance_engine.write.constant import constant_value
from lance_engine.write.dictionary import dictionary_page
from lance_engine.write.fixed import fixed_page
from lance_engine.write.leaves import Leaf, leaves_of
from lance_engine.write.lists import fixed_size_list_page
from lance_engine.write.packed import packed_page
from lance_engine.write.page_context import PageContext
from lance_engine.write.profile import BALANCED, Profile
from lance_engine.write.settings import Settings
from lance_engine.write.values import fixed_values, is_variable
from lance_engine.write.variable import variable_page


def encode_column(
    array: pa.Array,
    field: Field,
    version: tuple[int, int],
    leaves: Sequence[Leaf] | None = None,
    profile: Profile = BALANCED,
) -> list[list[Page]]:
    """Encode consecutive rows of a top-level column: for each leaf column in order, its pages.

    A leaf usually gets one page; long runs of empty and null lists force more. `leaves` are those of the
    array where the caller has them already.
    """
    leaves = leaves_of(array, field) if leaves is None else leaves
    return [_leaf_pages(array, field, number, leaf, version, profile) for number, leaf in enumerate(leaves)]


def _leaf_pages(
    array: pa.Array, field: Field, number: int, leaf: Leaf, version: tuple[int, int], profile: Profile
) -> list[Page]:
    levels = leaf.levels
    context = PageContext(leaf, version, profile, Settings.of(leaf.field, field), must_zip=False)
    # Chunks hold at least two values and all entries between them, and the levels of a chunk are limited: the
    # page is cut until no run without values comes near that limit. A single row that still does is zipped.
    if levels.valid_slots == 0 or levels.longest_invisible_run * 4 <= levels.budget:
        return [_encode_leaf(context)]
    if len(array) == 1:
        return [_encode_leaf(replace(context, must_zip=True))]
    half = len(array) // 2
    pages: list[Page] = []
    for part in (array.slice(0, half), array.slice(half)):
        pages += _leaf_pages(part, field, number, leaves_of(part, field)[number], version, profile)
    return pages


def _encode_leaf(context: PageContext) -> Page:
    array, levels, types = context.leaf.array, context.levels, pa.types
    if context.leaf.field.is_blob_v2:
        return blob_v2_page(context, array)
    if context.leaf.field.is_blob:
        return blob_page(context, array)
    if types.is_struct(array.type) and not context.leaf.field.is_packed:
        return _encode_empty_struct(context.leaf)
    if levels.valid_slots == 0:
        return v2_1.all_null_page(levels, compress=context.version >= (2, 2))
    if types.is_struct(array.type):
        return packed_page(context, array)
    if types.is_dictionary(array.type):
        return dictionary_page(context, array)
    if types.is_fixed_size_list(array.type):
        return fixed_size_list_page(context, array)
    if context.version >= (2, 2) and not context.settings.structure:
        value = constant_value(array, levels)
        if value is not None:
            return v2_1.constant_page(value, levels)
    if is_variable(array.type):
        return variable_page(context, array)
    return fixed_page(context, fixed_values(array))


def _encode_empty_struct(leaf: Leaf) -> EncodedPage:
    if leaf.levels.max_def or leaf.levels.max_rep:
        raise UnsupportedTypeError(
            "A struct without fields can hold no nulls and cannot stand inside lists",
            column=leaf.path,
            remedy="Leave the column out",
        )
    return v2_1.empty_struct_page(leaf.levels.rows)
