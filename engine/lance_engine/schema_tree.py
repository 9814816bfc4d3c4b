"""The schema tree of a dataset.

A schema is a tree of `Field` nodes. Each node has a number that data files use to identify its column, and a
textual *logical type* such as ``int64``, ``timestamp:us:UTC`` or ``list.struct``. Arrow types are derived
from the logical type and the children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final

import pyarrow as pa

from lance_engine.errors import ColumnNotFoundError, InvalidArgumentError, SchemaMismatchError
from lance_engine.logical_types import (
    EXTENSION_NAME,
    JSON_TEXT_EXTENSION,
    arrow_metadata,
    describe,
    is_stored_as,
    text_metadata,
    to_arrow_type,
)
from lance_engine.spelling import nearest

BLOB_ENCODING: Final = "lance-encoding:blob"
PACKED_KEYS: Final = ("packed", "lance-encoding:packed")
BLOB_V2_EXTENSION: Final = "lance.blob.v2"

NO_PARENT: Final = -1
MAX_FIXED_SIZE_LISTS: Final = 16
MAX_FIELDS: Final = 100_000
LISTS: Final = ("list", "large_list")
_EXTENSION_KEYS: Final = "ARROW:extension:"
_EXTENSION: Final = (EXTENSION_NAME, f"{_EXTENSION_KEYS}metadata")
_SHARED_SCHEMAS: Final = 8


@dataclass(frozen=True, slots=True)
class Field:
    """One node of the schema tree.

    `id` is unique in the schema and does not change when a field is renamed; `parent_id` is -1 at the top
    level. `uninterpreted` keeps the serialized parts of the stored message that are not used here.
    """

    name: str
    id: int
    parent_id: int
    logical_type: str
    nullable: bool
    children: tuple[Field, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    uninterpreted: bytes = field(default=b"", repr=False, compare=False)

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow (storage) type; UnsupportedFeatureError if the logical type is unknown.

        Blobs are large_binary and JSON is text, regardless of their stored form.
        """
        if self.is_blob_v2:
            return pa.large_binary()
        if self.is_json:
            return pa.string()
        return to_arrow_type(self.name, self.logical_type, [child.to_arrow() for child in self.children])

    @property
    def column_type(self) -> pa.DataType:
        """The stored type of a column: `arrow_type`, but binary values for JSON."""
        return pa.large_binary() if self.is_json else self.arrow_type

    def to_arrow(self) -> pa.Field:
        """The Arrow field with name, type, nullability and metadata."""
        metadata = self.metadata
        if self.is_blob_v2:
            # The extension stands for a struct; the key makes blobs again of values that are written back.
            kept = {key: value for key, value in metadata.items() if not key.startswith(_EXTENSION_KEYS)}
            metadata = {**kept, BLOB_ENCODING: "true"}
        if self.is_json:
            metadata = {**metadata, EXTENSION_NAME: JSON_TEXT_EXTENSION}
        kind = self.arrow_type
        if EXTENSION_NAME in metadata and not is_stored_as(kind, *(metadata.get(key) for key in _EXTENSION)):
            metadata = {key: value for key, value in metadata.items() if key not in _EXTENSION}
        return pa.field(self.name, kind, self.nullable, arrow_metadata(metadata))

    @property
    def is_blob(self) -> bool:
        """Whether values may be stored outside of pages, with descriptors."""
        return self.logical_type == "blob" or self.metadata.get(BLOB_ENCODING) == "true" or self.is_blob_v2

    @property
    def is_blob_v2(self) -> bool:
        """Whether this is a blob of format 2.2, whose descriptors may refer to other files."""
        return self.metadata.get(EXTENSION_NAME) == BLOB_V2_EXTENSION

    @property
    def is_json(self) -> bool:
        """Whether this is JSON, which is text in Arrow and binary in files."""
        return self.logical_type == "json"

    @property
    def is_fixed_size_list_of_structs(self) -> bool:
        """Whether this is a fixed-size list whose items have their own columns."""
        return self.logical_type.startswith("fixed_size_list:struct:")

    @property
    def is_packed(self) -> bool:
        """Whether this is a struct stored row by row in a single column."""
        return self.logical_type == "struct" and any(self.metadata.get(key) == "true" for key in PACKED_KEYS)

    @property
    def is_leaf(self) -> bool:
        """Whether the field owns a column from format 2.1 on; packed structs and blobs own one as a whole."""
        return not self.children or self.is_packed or self.is_blob

    def leaves(self) -> Iterator[Field]:
        """The fields at or below this one that own a column from format 2.1 on, in column order."""
        if self.is_leaf:
            yield self
            return
        for child in self.children:
            yield from child.leaves()

    def walk(self) -> Iterator[Field]:
        """This field and everything below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Schema:
    """The top-level fields of a dataset, and the metadata of its Arrow schema."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def names(self) -> list[str]:
        return [top.name for top in self.fields]

    @cached_property
    def _by_name(self) -> dict[str, Field]:
        """The first top-level field of each name."""
        return {top.name: top for top in reversed(self.fields)}

    def to_arrow(self) -> pa.Schema:
        """The Arrow schema; UnsupportedFeatureError names the column whose logical type is unknown."""
        return self._arrow

    @cached_property
    def _arrow(self) -> pa.Schema:
        return pa.schema([top.to_arrow() for top in self.fields], metadata=arrow_metadata(self.metadata))

    @classmethod
    def from_arrow(cls, schema: pa.Schema, first_id: int = 0) -> Schema:
        """Number the fields of an Arrow schema depth-first, starting with `first_id`.

        UnsupportedTypeError names the path of a column that no file version can hold; SchemaMismatchError is
        raised for column names that are repeated or contain a dot.
        """
        _check_names(schema)
        numbers = _Counter(first_id)
        fields = tuple(_from_arrow(top, NO_PARENT, numbers, top.name) for top in schema)
        made = cls(fields, text_metadata(schema.metadata))
        try:
            return _shared(made)
        except RecursionError:  # nested too deep to be compared, and to be written
            return made

    def walk(self) -> Iterator[Field]:
        """All fields, parents first, in storage order."""
        for top in self.fields:
            yield from top.walk()

    def leaves(self) -> Iterator[Field]:
        """The fields that own a column in files of format 2.1 and later, in column order."""
        for top in self.fields:
            yield from top.leaves()

    def field(self, path: str) -> Field:
        """The field called `path`; ``a.b`` is child ``b`` of ``a``. ColumnNotFoundError suggests a name."""
        return self.path(path, path.split(".") if isinstance(path, str) else ())[-1]

    def path(self, path: str, names: Sequence[str]) -> tuple[Field, ...]:
        """The fields from the top to the one called `path`, whose parts are `names`; errors as of `field`."""
        if not isinstance(path, str):
            raise InvalidArgumentError(f"The name of a column is text, not {path!r}")
        whole = self._by_name.get(path)
        if whole is not None:
            return (whole,)
        siblings: tuple[Field, ...] = ()
        fields: list[Field] = []
        for name in names:
            below = next((child for child in siblings if child.name == name), None)
            child = below if fields else self._by_name.get(name)
            if child is None:
                raise self._not_found(path)
            fields.append(child)
            siblings = () if child.is_blob else child.children
        return tuple(fields)

    def paths_by_id(self) -> dict[int, str]:
        """The dotted path of every field, by field id, in the order of `walk`."""
        return dict(self._id_paths())

    def _not_found(self, path: str) -> ColumnNotFoundError:
        """The error for a column that does not exist, with the name that may be meant."""
        known = [name for _, name in self._id_paths()]
        near = nearest(path, known) or next((name for name in known if name.lower() == path.lower()), None)
        if near is not None:
            remedy = f"Did you mean '{near}'?"
        else:
            remedy = "Available columns: " + (", ".join(self.names[:20]) or "none")
            remedy += ", ..." if len(self.fields) > 20 else ""
        return ColumnNotFoundError(f"Column '{path}' not found", remedy=remedy)

    def _id_paths(self) -> Iterator[tuple[int, str]]:
        def below(prefix: str, node: Field) -> Iterator[tuple[int, str]]:
            path = f"{prefix}{node.name}"
            yield node.id, path
            for child in node.children:
                yield from below(path + ".", child)

        for top in self.fields:
            yield from below("", top)


@lru_cache(maxsize=_SHARED_SCHEMAS)
def _shared(schema: Schema) -> Schema:
    """An equal schema made before, if any: what is kept per schema serves all tables made alike."""
    return schema


class _Counter:
    """Hands out field ids in ascending order."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take(self) -> int:
        self._next += 1
        return self._next - 1


def _check_names(schema: pa.Schema) -> None:
    seen: set[str] = set()
    for name in schema.names:
        if "." in name:
            raise SchemaMismatchError(
                f"The column name '{name}' contains a dot, which separates a struct from its children",
                remedy="Rename the column",
            )
        if name in seen:
            raise SchemaMismatchError(f"Duplicate column name '{name}'", remedy="Rename one of them")
        seen.add(name)


def _from_arrow(arrow: pa.Field, parent_id: int, numbers: _Counter, path: str) -> Field:
    described = describe(arrow, path)
    field_id = numbers.take()
    children = tuple(
        _from_arrow(child, field_id, numbers, f"{path}.{child.name}") for child in described.children
    )
    return Field(
        arrow.name, field_id, parent_id, described.logical_type, arrow.nullable, children, described.metadata
    )
