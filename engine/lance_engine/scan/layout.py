"""What fragments share whose files hold the same columns: where fields are stored, and as which types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa

from lance_engine.errors import UnsupportedFeatureError
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.scan.types import stored_type

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment
    from lance_engine.schema_tree import Field, Schema
    from lance_engine.table.snapshot import Snapshot

# Storage version, field ids and column numbers of a data file.
_FileColumns = tuple[str, tuple[int, ...], tuple[int, ...]]


class ProjectedColumns(NamedTuple):
    """Some columns, those of the system included, of every fragment of a layout."""

    schema: pa.Schema
    """As the scan promises them."""
    decoded: pa.Schema
    """As the decoders give those that are stored."""
    stored: tuple[tuple[str, Field], ...]
    missing: frozenset[str]
    """Columns that are in no file: their values are null."""
    required: list[int]
    """Which of the decoded columns must not hold nulls."""
    columns: dict[int, list[int]]
    """The numbers of the columns of files that hold them, by number of the file."""
    is_plain: bool
    """Whether decoding is all there is to do."""


class FragmentLayout:
    """Immutable but for what it keeps of its answers; threads may share it."""

    def __init__(self, schema: Schema, files: tuple[_FileColumns, ...]) -> None:
        self._schema = schema
        self._legacy = {number for number, (version, *_) in enumerate(files) if version == "0.1"}
        #: field id -> (file, column); of two files that hold the same field the later one counts
        self.places = {
            field_id: (number, column)
            for number, file in enumerate(files)
            for field_id, column in _columns_of(*file)
            if field_id >= 0 and column >= 0
        }
        self._projected: dict[tuple[tuple[str, ...], frozenset[str]], ProjectedColumns] = {}

    def is_legacy(self, field: Field) -> bool:
        """Whether a stored field is in a file of version 0.1."""
        return bool(self._legacy) and self.places[next(field.leaves()).id][0] in self._legacy

    def is_stored(self, field: Field) -> bool:
        """Whether the column exists in the files; if not, all its values are null."""
        if field.logical_type == "struct" and not field.children:
            return field.id in self.places
        stored = [leaf.id in self.places for leaf in field.leaves()]
        if any(stored) and not all(stored):
            raise UnsupportedFeatureError(
                "A part of the column is not stored in this fragment",
                column=field.name,
                remedy="Compact or rewrite the dataset",
            )
        return all(stored)

    def columns(self, fields: Iterable[Field]) -> dict[int, list[int]]:
        """The columns that hold fields and what is below them, by number of their file."""
        found: dict[int, list[int]] = {}
        for top in fields:
            for field in top.walk():
                if field.id in self.places:
                    number, column = self.places[field.id]
                    found.setdefault(number, []).append(column)
        return found

    def projected(self, names: tuple[str, ...], coded: frozenset[str]) -> ProjectedColumns:
        """Some columns, of which those in `coded` are dictionaries."""
        key = names, coded
        found = self._projected.get(key)
        if found is None:
            found = self._projected.setdefault(key, self._project(names, coded))
        return found

    def _project(self, names: tuple[str, ...], coded: frozenset[str]) -> ProjectedColumns:
        declared: list[pa.Field] = []
        decoded: list[pa.Field] = []
        stored: list[tuple[str, Field]] = []
        missing: set[str] = set()
        for name in names:
            if name in SYSTEM_FIELDS:
                declared.append(SYSTEM_FIELDS[name])
                continue
            field = self._schema.field(name)
            arrow = field.to_arrow()
            if name in coded:
                arrow = arrow.with_type(pa.dictionary(pa.int32(), arrow.type))
            declared.append(arrow)
            if self.is_stored(field):
                stored.append((name, field))
                decoded.append(arrow if name in coded else arrow.with_type(stored_type(field)))
            else:
                missing.add(name)
        schema, stored_schema = pa.schema(declared), pa.schema(decoded)
        return ProjectedColumns(
            schema,
            stored_schema,
            tuple(stored),
            frozenset(missing),
            [number for number, field in enumerate(decoded) if not field.nullable],
            self.columns(field for _, field in stored),
            stored_schema.equals(schema),
        )


_layouts: WeakKeyDictionary[Snapshot, dict[tuple[_FileColumns, ...], FragmentLayout]] = WeakKeyDictionary()


def layout_of(snapshot: Snapshot, fragment: Fragment) -> FragmentLayout:
    """The layout of a fragment; fragments alike have the same."""
    files = tuple((file.storage_version, file.fields, file.column_indices) for file in fragment.files)
    layouts = _layouts.get(snapshot)
    if layouts is None:
        layouts = _layouts.setdefault(snapshot, {})
    found = layouts.get(files)
    return layouts.setdefault(files, FragmentLayout(snapshot.schema, files)) if found is None else found


def _columns_of(version: str, fields: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(field id, column) pairs; files of version 0.1 find columns by field id."""
    return zip(fields, fields if version == "0.1" else columns, strict=False)
