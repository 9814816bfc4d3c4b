"""Checks that a file version can store the data before the first byte is written."""

from __future__ import annotations

import pyarrow as pa

from lance_engine.encodings.packed_rows import MAX_ROW_BYTES, is_variable_packed, packed_bits
from lance_engine.encodings.values import is_variable
from lance_engine.errors import SchemaMismatchError, UnsupportedTypeError
from lance_engine.scan.system import RESERVED_NAMES
from lance_engine.schema_limits import check_limits
from lance_engine.schema_tree import NO_PARENT, Field, Schema
from lance_engine.write.blob_schema import with_blobs_v2
from lance_engine.write.options import DEFAULT_VERSION, NEXT_VERSION, VERSIONS

_LISTS = ("list", "large_list", "map")


def version_for(schema: pa.Schema) -> str:
    """The default version, or the next one if only that one can store all columns, such as maps."""
    if _holds(schema, DEFAULT_VERSION):
        return DEFAULT_VERSION
    return NEXT_VERSION if _holds(with_blobs_v2(schema), NEXT_VERSION) else DEFAULT_VERSION


def _holds(schema: pa.Schema, version: str) -> bool:
    try:
        check_writable(Schema.from_arrow(schema), VERSIONS[version])
    except UnsupportedTypeError:
        return False
    return True


def check_writable(schema: Schema, version: tuple[int, int]) -> None:
    """UnsupportedTypeError names the column and a remedy; SchemaMismatchError for names of no column."""
    for name in RESERVED_NAMES.intersection(schema.names):
        raise SchemaMismatchError(
            f"The column name '{name}' is reserved",
            column=name,
            remedy="Rename the column, for example with AS in SQL",
        )
    if "" in schema.names:
        raise SchemaMismatchError(
            "A column has an empty name, which no statement can write",
            remedy="Rename the column, for example with AS in SQL",
        )
    check_limits(schema.fields)
    for field in schema.fields:
        _check(field, field.name, version)


def _check(field: Field, path: str, version: tuple[int, int], in_list: bool = False) -> None:
    name = f"{version[0]}.{version[1]}"
    if field.is_blob:
        _check_blob(field, path, version, in_list)
        return
    if field.is_packed:
        _check_packed(field, path, version)
        return
    if field.logical_type == "map" and version < (2, 2):
        raise UnsupportedTypeError(
            f"Maps are not supported in file version {name}",
            column=path,
            remedy='Use data_storage_version="2.2", or cast the column to a list of structs',
        )
    if field.logical_type.startswith("fixed_size_list:"):
        if field.children:
            _check_fixed_size_list_of_structs(field, path, version)
        _check_items(field.arrow_type, path)
    if field.logical_type == "fixed_size_binary:0":
        raise UnsupportedTypeError(
            "Binary values of size 0 are not supported", column=path, remedy="Cast the column to binary"
        )
    for child in field.children:
        below = in_list or field.logical_type.partition(".")[0] in _LISTS
        _check(child, f"{path}.{child.name}", version, below)


def _check_blob(field: Field, path: str, version: tuple[int, int], in_list: bool) -> None:
    name = f"{version[0]}.{version[1]}"
    if in_list and version == (2, 1):
        what = f"Lists of blobs are not supported in file version {name}"
    elif field.is_blob_v2 and version < (2, 2):
        what = f"Blobs of the second kind are not supported in file version {name}"
    elif field.is_blob_v2:
        return
    elif field.logical_type != "large_binary":
        what = "Only large_binary columns can be blobs"
    elif version < (2, 2):
        return
    else:
        what = f"Blobs of the first kind are not supported in file version {name}"
    raise UnsupportedTypeError(
        what,
        column=path,
        remedy="Remove the blob marker from the field metadata; large_binary supports values of any size",
    )


def _check_fixed_size_list_of_structs(field: Field, path: str, version: tuple[int, int]) -> None:
    what = ""
    if version < (2, 2):
        what = f"Fixed-size lists of structs are not supported in file version {version[0]}.{version[1]}"
    elif field.parent_id != NO_PARENT:
        # The pages of such a column count items: some readers miss the rows of its siblings.
        what = "Fixed-size lists of structs inside other columns are not supported"
    elif not field.is_fixed_size_list_of_structs:
        what = "Fixed-size lists of fixed-size lists of structs are not supported"
    elif any(_is_nested_list(node) or node.is_blob for child in field.children for node in child.walk()):
        what = "Fixed-size lists of structs with lists, maps or blobs are not supported"
    if what:
        raise UnsupportedTypeError(what, column=path, remedy="Cast the column to a variable-size list")


def _is_nested_list(field: Field) -> bool:
    kind = field.logical_type
    return kind.partition(".")[0] in _LISTS or (kind.startswith("fixed_size_list:") and bool(field.children))


def _check_packed(field: Field, path: str, version: tuple[int, int]) -> None:
    width = 0
    has_variable = is_variable_packed(field.arrow_type)
    for child in field.children:
        kind = child.arrow_type
        # Version 2.1 cannot store lists or strings in packed structs, and 2.0 cannot store strings there.
        if pa.types.is_fixed_size_list(kind) and version != (2, 1):
            _check_items(kind, f"{path}.{child.name}")
            while pa.types.is_fixed_size_list(kind):
                kind = kind.value_type
        if is_variable(kind) and version >= (2, 2):
            continue
        if pa.types.is_boolean(kind) and version >= (2, 2) and packed_bits(child.arrow_type) % 8 == 0:
            continue
        bits = 0 if pa.types.is_fixed_size_list(kind) or pa.types.is_dictionary(kind) else _bit_width(kind)
        width += bits // 8
        if bits == 0 or bits % 8:
            later = " before file version 2.2" if has_variable and version < (2, 2) else ""
            raise UnsupportedTypeError(
                f"Packed structs do not support fields of type {child.arrow_type}{later}",
                column=f"{path}.{child.name}",
                remedy="Remove the packed marker from the metadata of the struct",
            )
    if not has_variable and not 0 < width <= MAX_ROW_BYTES:
        raise UnsupportedTypeError(
            f"Packed structs of {width} bytes are not supported",
            column=path,
            remedy="Remove the packed marker from the field metadata",
        )


def _bit_width(kind: pa.DataType) -> int:
    """Bits of one value; 0 for types without a fixed width."""
    try:
        return int(kind.bit_width)
    except ValueError:
        return 0


def _check_items(item: pa.DataType, path: str) -> None:
    while pa.types.is_fixed_size_list(item):
        if item.list_size == 0:
            raise UnsupportedTypeError(
                "Fixed-size lists of size 0 are not supported", column=path, remedy="Drop the column"
            )
        item = item.value_type
