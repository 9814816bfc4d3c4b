"""What fragments with the same columns in their files share: where fields are, and their types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lance_engine.scan.code_columns import CodeColumn
from lance_engine.scan.paths import arrow_field, field_path, is_read_alone, narrowed, places_below
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.scan.types import stored_type
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment
    from lance_engine.schema_tree import Field, Schema
    from lance_engine.table.snapshot import Snapshot

#: Columns by name or path, as top-level fields with only some of their children, or dictionary codes.
Names = tuple["str | Field | CodeColumn", ...]
# Storage version, field ids and column numbers of a data file.
_FileColumns = tuple[str, tuple[int, ...], tuple[int, ...]]


class StoredColumn(NamedTuple):
    """What is decoded: a top-level field, without what is not stored."""

    field: Field
    coded: bool = False
    """Whether as codes."""
    alone: bool = False
    """Whether only the leaf below it, without the structs around that."""
    entries: CodeColumn | None = None
    """The dictionary codes of its strings, if these are decoded."""


class OutputColumn(NamedTuple):
    """A column of a projection, and how it is produced."""

    arrow: pa.Field
    """As the scan promises it."""
    wanted: Field | None
    """The top-level field that it is, or is below of; None for a column of the system."""
    stored: tuple[Field, ...]
    """The part that this layout stores, by file; nothing where all its values are null."""
    decoded: int
    """The number of the first of the decoded columns with that."""
    places: tuple[int, ...]
    """Where it is below that column, as places among children."""


class ProjectedColumns(NamedTuple):
    """Some columns, including system columns, of every fragment of a layout."""

    schema: pa.Schema
    """As the scan promises them."""
    decoded: pa.Schema
    """As the decoders give those that are stored."""
    outputs: tuple[OutputColumn, ...]
    stored: tuple[StoredColumn, ...]
    required: list[int]
    """Which of the decoded columns must not hold nulls."""
    columns: dict[int, list[int]]
    """The numbers of the columns of files that hold them, by number of the file."""
    is_plain: bool
    """Whether decoding is all that is needed."""


class FragmentLayout:
    """Immutable except for its caches; thread-safe."""

    def __init__(self, schema: Schema, files: tuple[_FileColumns, ...]) -> None:
        self._schema = schema
        self._legacy = {number for number, (version, *_) in enumerate(files) if version == "0.1"}
        #: field id -> (file, column); if two files contain the same field, the later one is used
        self.places = {
            field_id: (number, column)
            for number, file in enumerate(files)
            for field_id, column in _columns_of(*file)
            if field_id >= 0 and column >= 0
        }
        # Files of version 2.0 store structs separately from their fields; they are not null, even without
        # fields.
        self._structs_2_0 = {
            field_id for field_id, (number, _) in self.places.items() if files[number][0] == "2.0"
        }
        self._projected: dict[tuple[Names, frozenset[str]], ProjectedColumns] = {}

    def is_legacy(self, field: Field) -> bool:
        """Whether a stored field is in a file of version 0.1."""
        return bool(self._legacy) and self.places[next(field.leaves()).id][0] in self._legacy

    def stored(self, field: Field) -> Field | None:
        """The field as stored in the files: missing parts, or all of it if None, are read as null."""
        if field.is_leaf:
            return field if field.id in self.places else None
        children = tuple(part for child in field.children if (part := self.stored(child)) is not None)
        if not children and not self._is_stored_struct(field):
            return None
        return field if children == field.children else replace(field, children=children)

    def _is_stored_struct(self, field: Field) -> bool:
        """Whether a struct itself is stored, whatever fields are stored."""
        return field.logical_type == "struct" and field.id in self._structs_2_0

    def _by_file(self, field: Field) -> tuple[Field, ...]:
        """A stored field as one field for each file with some of its leaves.

        Every leaf stores which parent structs are null, and leaves in different files may disagree.
        """
        numbers = dict.fromkeys(self.places[leaf.id][0] for leaf in field.leaves())
        if len(numbers) == 1:
            return (field,)
        return tuple(part for number in numbers if (part := self._in_file(field, number)) is not None)

    def _in_file(self, field: Field, number: int) -> Field | None:
        if field.is_leaf:
            return field if self.places[field.id][0] == number else None
        children = (self._in_file(child, number) for child in field.children)
        held = tuple(child for child in children if child is not None)
        return replace(field, children=held) if held else None

    def _stored_part(self, wanted: Field, full: Field) -> Field | None:
        """`stored` for a field with some of the children of `full`.

        If the files contain only other children, one of these is included, to know which structs are null.
        """
        if wanted.is_leaf or wanted.children == full.children:
            return self.stored(wanted)
        known = {child.id: child for child in full.children}
        children = [self._stored_part(child, known[child.id]) for child in wanted.children]
        held = tuple(child for child in children if child is not None) or self._any_stored(full)
        return replace(wanted, children=held) if held or self._is_stored_struct(full) else None

    def _any_stored(self, field: Field) -> tuple[Field, ...]:
        """The first child of which the files hold something, with no more than needed; at most one."""
        for child in field.children:
            if child.is_leaf and child.id in self.places:
                return (child,)
            below = () if child.is_leaf else self._any_stored(child)
            if below or self._is_stored_struct(child):
                return (replace(child, children=below),)
        return ()

    def columns(self, fields: Iterable[Field]) -> dict[int, list[int]]:
        """The columns that contain fields and their descendants, by file number."""
        columns: dict[int, list[int]] = {}
        for top in fields:
            for field in top.walk():
                if field.id in self.places:
                    number, column = self.places[field.id]
                    columns.setdefault(number, []).append(column)
        return columns

    def projected(self, names: Names, coded: frozenset[str]) -> ProjectedColumns:
        """Some columns, of which those in `coded` are dictionaries."""
        key = names, coded
        projected = self._projected.get(key)
        if projected is None:
            projected = self._projected.setdefault(key, self._project(names, coded))
        return projected

    def _project(self, names: Names, coded: frozenset[str]) -> ProjectedColumns:
        outputs: list[OutputColumn] = []
        decoded: list[pa.Field] = []
        parts: list[StoredColumn] = []
        for name in names:
            if isinstance(name, str) and name in SYSTEM_FIELDS:
                outputs.append(OutputColumn(SYSTEM_FIELDS[name], None, (), -1, ()))
                continue
            if isinstance(name, CodeColumn):
                path = field_path(self._schema, name.source)
                source = narrowed(path)
                kept = (source,) if path[-1].id in self.places else ()
                arrow = name.to_arrow()
                outputs.append(OutputColumn(arrow, source, kept, len(decoded), ()))
                parts += [StoredColumn(field, alone=len(path) > 1, entries=name) for field in kept]
                decoded += [arrow for _ in kept]
                continue
            path = field_path(self._schema, name) if isinstance(name, str) else (name,)
            wanted = narrowed(path)
            arrow = arrow_field(self._schema, name) if isinstance(name, str) else name.to_arrow()
            if name in coded:
                arrow = arrow.with_type(pa.dictionary(pa.int32(), arrow.type))
            alone = is_read_alone(path)
            if alone and path[-1].id not in self.places:
                part = None  # the structs around it may be stored
            elif isinstance(name, str):
                part = self.stored(wanted)
            else:
                (full,) = self._schema.path(name.name, [name.name])
                part = self._stored_part(name, full)
            stored = self._by_file(part) if part is not None else ()
            places = () if alone else places_below(path)
            outputs.append(OutputColumn(arrow, wanted, stored, len(decoded), places))
            for held in stored:
                parts.append(StoredColumn(held, name in coded, alone))
                as_declared = alone or name in coded
                decoded.append(arrow if as_declared else held.to_arrow().with_type(stored_type(held)))
        schema, stored_schema = pa.schema([output.arrow for output in outputs]), pa.schema(decoded)
        return ProjectedColumns(
            schema,
            stored_schema,
            tuple(outputs),
            tuple(parts),
            [number for number, field in enumerate(decoded) if not field.nullable],
            self.columns(part.field for part in parts),
            stored_schema.equals(schema),
        )


_layouts: WeakIdentityDict[Snapshot, dict[tuple[_FileColumns, ...], FragmentLayout]] = WeakIdentityDict()


def layout_of(snapshot: Snapshot, fragment: Fragment) -> FragmentLayout:
    """The layout of a fragment; equal fragments share it."""
    files = tuple((file.storage_version, file.fields, file.column_indices) for file in fragment.files)
    layouts = _layouts.get(snapshot)
    if layouts is None:
        layouts = _layouts.setdefault(snapshot, {})
    layout = layouts.get(files)
    return layouts.setdefault(files, FragmentLayout(snapshot.schema, files)) if layout is None else layout


def _columns_of(version: str, fields: tuple[int, ...], columns: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(field id, column) pairs; files of version 0.1 find columns by field id."""
    return zip(fields, fields if version == "0.1" else columns, strict=False)
