"""Consecutive rows of a column as pages of version 2.0, in which structs and lists have columns too."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.encodings.page import EncodedPage, Page
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_0.blob import blob_page
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.lists import list_page
from lance_engine.encodings.v2_0.packed_struct import packed_page
from lance_engine.encodings.v2_0.table import TABLE
from lance_engine.errors import SchemaMismatchError, UnsupportedTypeError
from lance_engine.format.pb import encodings_pb2 as pb
from lance_engine.schema_tree import Field


def encode_column(array: pa.Array, field: Field) -> list[list[Page]]:
    """The pages of each column of a top-level field, in column order; a field gets one page for these rows.

    SchemaMismatchError when a null occurs in a field declared non-nullable.
    """
    columns: list[list[Page]] = []
    _descend(array, field, field, field.name, columns)
    return columns


def _descend(array: pa.Array, field: Field, top: Field, path: str, columns: list[list[Page]]) -> None:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count and not field.nullable:
        raise SchemaMismatchError(
            "Null value in a non-nullable column",
            column=path,
            remedy="Remove the nulls, or make the field nullable",
        )
    if pa.types.is_struct(array.type) and array.null_count:
        raise UnsupportedTypeError(
            "Files of version 2.0 cannot hold null structs",
            column=path,
            remedy="Write version 2.1, or replace null structs with structs of nulls",
        )
    pages: list[Page] = []
    columns.append(pages)
    if field.is_leaf and field.logical_type != "struct":
        # A page without rows would add nothing.
        if len(array):
            pages.append(_leaf_page(array, field, Settings.of(field, top)))
    elif field.is_packed:
        if len(array):
            pages.append(packed_page(array, field, path))
    elif pa.types.is_struct(array.type):
        pages.append(EncodedPage(len(array), struct_header(), ()))
        for number, child in enumerate(field.children):
            _descend(array.field(number), child, top, f"{path}.{child.name}", columns)
    else:
        items, page = list_page(array)
        if len(array):
            pages.append(page)
        (child,) = field.children
        _descend(items, child, top, f"{path}.{child.name}", columns)


def _leaf_page(array: pa.Array, field: Field, settings: Settings) -> Page:
    if field.is_blob:
        return blob_page(array)
    builder = PageBuilder()
    encodings = (each.encode(builder, array, settings) for each in TABLE)
    return builder.page(len(array), next(encoding for encoding in encodings if encoding is not None))


def struct_header() -> pb.ArrayEncoding:
    """The placeholder for a struct, whose children have their own columns."""
    return pb.ArrayEncoding(struct=pb.SimpleStruct())
