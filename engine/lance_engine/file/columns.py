"""Which fields of a schema own the columns of a file."""

from __future__ import annotations

from collections.abc import Iterator

from lance_engine.types import Field, Schema


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
