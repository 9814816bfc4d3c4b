"""Which fields of a schema own the columns of a file, and how the file describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from lance_engine.schema_tree import BLOB_ENCODING, NO_PARENT, PACKED_KEYS, Field, Schema

# The columns of the descriptor of a blob (format 2.2, blob v2).
_BLOB_DESCRIPTOR: Final = {
    "kind": "uint8",
    "position": "uint64",
    "size": "uint64",
    "blob_id": "uint32",
    "blob_uri": "string",
}


def columns_of(schema: Schema, version: tuple[int, int]) -> list[Field]:
    """The field of each column in column order; in version 2.0 structs and lists own columns as well."""
    if version >= (2, 1):
        return list(schema.leaves())
    return [field for top in schema.fields for field in _owners(top)]


def _owners(field: Field) -> Iterator[Field]:
    yield field
    if not field.is_leaf:
        for child in field.children:
            yield from _owners(child)


def items_per_row(schema: Schema) -> dict[int, int]:
    """For each leaf below a fixed-size list of structs, by field id, how many items a row has (2.2)."""
    factors: dict[int, int] = {}

    def walk(field: Field, factor: int) -> None:
        if field.is_fixed_size_list_of_structs:
            factor *= field.arrow_type.list_size
        if field.is_leaf:
            factors[field.id] = factor
        for child in () if field.is_leaf else field.children:
            walk(child, factor)

    for top in schema.fields:
        walk(top, 1)
    return factors


def stored_schema(schema: Schema) -> Schema:
    """The schema as stored in data files: with blob descriptors."""
    return Schema(tuple(_stored(field) for field in schema.fields), schema.metadata)


def _stored(field: Field) -> Field:
    if not field.is_blob_v2:
        return replace(field, children=tuple(_stored(child) for child in field.children))
    # These fields only exist in the file and have no ids.
    children = tuple(
        Field(name, NO_PARENT, NO_PARENT, kind, nullable=False) for name, kind in _BLOB_DESCRIPTOR.items()
    )
    metadata = {BLOB_ENCODING: "true", PACKED_KEYS[-1]: "true"}
    return replace(field, logical_type="struct", children=children, metadata=metadata)
