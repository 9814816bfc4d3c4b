"""Says before the first byte is written what a file version cannot hold."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.errors import UnsupportedTypeError
from lance_engine.types import Field, Schema


def check_writable(schema: Schema, version: tuple[int, int]) -> None:
    """UnsupportedTypeError names the column and a remedy."""
    for field in schema.fields:
        _check(field, field.name, version)


def _check(field: Field, path: str, version: tuple[int, int]) -> None:
    name = f"{version[0]}.{version[1]}"
    if field.is_blob:
        raise UnsupportedTypeError(
            "Blob columns cannot be written yet",
            column=path,
            remedy="Remove the blob marker from the field metadata; large_binary holds values of any size",
        )
    if field.is_packed:
        raise UnsupportedTypeError(
            "Packed structs cannot be written yet",
            column=path,
            remedy="Remove the packed marker from the field metadata",
        )
    if field.logical_type == "map" and version < (2, 2):
        raise UnsupportedTypeError(
            f"Maps cannot be written in file version {name}",
            column=path,
            remedy="Cast the column to a list of structs",
        )
    if field.logical_type.startswith("fixed_size_list:"):
        if field.children:
            raise UnsupportedTypeError(
                f"Fixed-size lists of structs cannot be written in file version {name}",
                column=path,
                remedy="Cast the column to a list with variable length",
            )
        _check_items(field.arrow_type, path)
    if field.logical_type == "fixed_size_binary:0":
        raise UnsupportedTypeError(
            "Binary values of size 0 cannot be stored", column=path, remedy="Cast the column to binary"
        )
    for child in field.children:
        _check(child, f"{path}.{child.name}", version)


def _check_items(item: pa.DataType, path: str) -> None:
    while pa.types.is_fixed_size_list(item):
        if item.list_size == 0:
            raise UnsupportedTypeError(
                "Fixed-size lists of size 0 cannot be stored", column=path, remedy="Leave the column out"
            )
        item = item.value_type
