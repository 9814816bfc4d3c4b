"""Says before the first byte is written what a file version cannot hold."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.errors import UnsupportedTypeError
from lance_engine.types import Field, Schema
from lance_engine.write.packed import MAX_ROW_BYTES

_LISTS = ("list", "large_list", "map")


def check_writable(schema: Schema, version: tuple[int, int]) -> None:
    """UnsupportedTypeError names the column and a remedy."""
    for field in schema.fields:
        _check(field, field.name, version)


def _check(field: Field, path: str, version: tuple[int, int], in_list: bool = False) -> None:
    name = f"{version[0]}.{version[1]}"
    if field.is_blob:
        _check_blob(field, path, version, in_list)
        return
    if field.is_packed:
        _check_packed(field, path)
        return
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
        below = in_list or field.logical_type.partition(".")[0] in _LISTS
        _check(child, f"{path}.{child.name}", version, below)


def _check_blob(field: Field, path: str, version: tuple[int, int], in_list: bool) -> None:
    if field.logical_type == "large_binary" and version < (2, 2) and not in_list:
        return
    if field.children:
        what = "Blobs of the second kind cannot be written"
    elif in_list:
        what = "Lists of blobs cannot be stored"
    elif field.logical_type != "large_binary":
        what = "Only large_binary columns can be blobs"
    else:
        what = "Blobs cannot be written in file version 2.2"
    raise UnsupportedTypeError(
        what,
        column=path,
        remedy="Remove the blob marker from the field metadata; large_binary holds values of any size",
    )


def _check_packed(field: Field, path: str) -> None:
    width = 0
    for child in field.children:
        kind = child.arrow_type
        flat = not pa.types.is_fixed_size_list(kind) and not pa.types.is_dictionary(kind)
        try:
            bits = kind.bit_width if flat else 1
        except ValueError:
            bits = 1
        width += bits // 8
        if bits == 0 or bits % 8:
            raise UnsupportedTypeError(
                f"Packed structs cannot hold fields of type {kind}",
                column=f"{path}.{child.name}",
                remedy="Remove the packed marker from the metadata of the struct",
            )
    if not 0 < width <= MAX_ROW_BYTES:
        raise UnsupportedTypeError(
            f"Packed structs of {width} bytes cannot be stored",
            column=path,
            remedy="Remove the packed marker from the field metadata",
        )


def _check_items(item: pa.DataType, path: str) -> None:
    while pa.types.is_fixed_size_list(item):
        if item.list_size == 0:
            raise UnsupportedTypeError(
                "Fixed-size lists of size 0 cannot be stored", column=path, remedy="Leave the column out"
            )
        item = item.value_type
