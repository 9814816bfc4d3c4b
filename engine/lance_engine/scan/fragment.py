"""Reading the rows of one fragment: finding the columns in its data files and decoding them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.index.zone_maps import ZoneMap, read_zone_map
from lance_engine.scan.system import ROW_ADDRESS, ROW_ID, SYSTEM_FIELDS
from lance_engine.scan.types import to_declared, without_dictionaries

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment
    from lance_engine.table.snapshot import Snapshot
    from lance_engine.types import Field

# Bytes from which on it matters whether a value is copied.
_WIDE_VALUE = 128

Overlays = list[tuple[kernels.Source, kernels.Source]]
U32Array = npt.NDArray[np.uint32]


def _refuse_legacy(snapshot: Snapshot, fragment: Fragment) -> None:
    """Files of version 0.1 do not say where columns lie: that none is found would read as nulls."""
    for file in fragment.files:
        if file.major_version == 0 and not file.column_indices:
            raise UnsupportedFeatureError(
                "Data files of version 0.1 are not supported",
                path=snapshot.uri,
                fragment=fragment.id,
                remedy="Rewrite the dataset in a newer file version with the program that created it",
            )


class BuiltField(NamedTuple):
    """A decoder, and per file the leaves whose bytes can be fetched ahead."""

    decoder: kernels.Field
    leaves: dict[FileReader, list[kernels.LeafColumn]]


class FragmentReader:
    """The columns of a fragment. Files are opened when a projection first needs them; threads may share."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self.fragment = fragment
        self._snapshot = snapshot
        self._files: dict[int, FileReader] = {}
        self._built: dict[tuple[str, bool], BuiltField] = {}
        self._projections: dict[tuple[tuple[str, ...], frozenset[str]], Projection] = {}
        self._zone_maps: dict[int, ZoneMap | None] = {}
        _refuse_legacy(snapshot, fragment)
        # Field id -> (file, column); of two files that hold the same field the later one counts.
        self._places = {
            field_id: (number, column)
            for number, file in enumerate(fragment.files)
            for field_id, column in zip(file.fields, file.column_indices, strict=False)
            if field_id >= 0 and column >= 0
        }

    @property
    def rows(self) -> int:
        """Physical rows, deleted ones included."""
        return self.fragment.physical_rows

    def deleted(self) -> U32Array | None:
        """Sorted offsets of the deleted rows, None if there are none."""
        return self._snapshot.deleted_rows(self.fragment)

    def projection(self, names: tuple[str, ...], coded: frozenset[str] = frozenset()) -> Projection:
        """The decoders of these columns, system columns included; those in `coded` give dictionaries."""
        key = (names, coded.intersection(names))
        found = self._projections.get(key)
        if found is None:
            with self.placed():
                found = self._projections.setdefault(key, Projection(self, *key))
        return found

    def field(self, name: str) -> Field:
        return self._snapshot.schema.field(name)

    def system_column(self, name: str, begin: int, end: int) -> pa.Array:
        """`_rowid` or `_rowaddr` of rows [begin, end)."""
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return pa.array(self._snapshot.row_ids(self.fragment, np.arange(begin, end, dtype=np.uint64)))
        first = self.fragment.id << 32
        return pa.array(np.arange(first + begin, first + end, dtype=np.uint64))

    def system_values(self, name: str, rows: U32Array) -> pa.Array:
        """`_rowid` or `_rowaddr` of certain rows."""
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return pa.array(self._snapshot.row_ids(self.fragment, rows))
        return pa.array(rows.astype(np.uint64) + np.uint64(self.fragment.id << 32))

    def file(self, number: int) -> FileReader:
        found = self._files.get(number)
        if found is None:
            data_file = self.fragment.files[number]
            store, path = self._snapshot.data_file_location(data_file)
            reader = FileReader(store, path, size=data_file.file_size)
            found = self._files.setdefault(number, reader)
        return found

    def built(self, field: Field, coded: bool = False) -> BuiltField:
        """The decoder of a top-level field, as codes if asked; projections share it."""
        found = self._built.get((field.name, coded))
        if found is None:
            builder = FieldBuilder(self._place, self.rows)
            decoder = builder.build(field, coded)
            found = self._built.setdefault((field.name, coded), BuiltField(decoder, builder.leaves))
        return found

    def is_dictionary_coded(self, name: str) -> bool:
        """Whether all pages of a string column have a dictionary."""
        if name in SYSTEM_FIELDS:
            return False
        field = self.field(name)
        if field.logical_type not in ("string", "large_string") or not self.is_stored(field):
            return False
        leaves = [leaf for leaves in self.built(field).leaves.values() for leaf in leaves]
        return bool(leaves) and all(leaf.gives_codes for leaf in leaves)

    def _place(self, field: Field) -> tuple[FileReader, int]:
        number, column = self._places[field.id]
        return self.file(number), column

    def holds(self, leaf: Field) -> bool:
        """Whether the column of a leaf exists in the files; if not, all its values are null."""
        return leaf.id in self._places

    def zone_map(self, leaf: Field, name: str) -> ZoneMap | None:
        """The zone map of a stored leaf outside of lists, if it has one; `name` is its path, for errors."""
        if leaf.id not in self._zone_maps:
            with self.placed():
                file, column = self._place(leaf)
                found = read_zone_map(file, column, leaf, name)
                if found is not None and found.rows != self.rows:
                    raise CorruptFileError(
                        f"The column has {found.rows} rows, its fragment {self.rows}",
                        path=file.path,
                        column=name,
                    )
            self._zone_maps[leaf.id] = found
        return self._zone_maps[leaf.id]

    def is_stored(self, field: Field) -> bool:
        """Whether the column exists in the files; if not, all its values are null."""
        if field.logical_type == "struct" and not field.children:
            return field.id in self._places
        stored = [leaf.id in self._places for leaf in field.leaves()]
        if any(stored) and not all(stored):
            raise UnsupportedFeatureError(
                "A part of the column is not stored in this fragment",
                column=field.name,
                remedy="Compact or rewrite the dataset",
            )
        return all(stored)

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Add to errors where they happened, and make those of the kernels ours."""
        try:
            yield
        except LanceError as error:
            raise error.at(version=self._snapshot.version, fragment=self.fragment.id) from error.__cause__
        except kernels.CorruptDataError as error:
            what, column, page = error.args
            paths = [file.path for file in self._files.values()]
            raise CorruptFileError(
                what,
                path=paths[0] if len(paths) == 1 else self._snapshot.uri,
                version=self._snapshot.version,
                fragment=self.fragment.id,
                column=column,
                page=page,
                remedy="Restore the file from a copy, or go back to a version that does not use it",
            ) from error


class Projection:
    """Some columns of a fragment, in a fixed order."""

    def __init__(self, reader: FragmentReader, names: tuple[str, ...], coded: frozenset[str]) -> None:
        self._reader = reader
        self._names = names
        self._fields: list[pa.Field] = []
        self._stored: list[str] = []
        self._missing: dict[str, pa.DataType] = {}
        stored_fields: list[pa.Field] = []
        decoders: list[kernels.Field] = []
        leaves: dict[FileReader, list[kernels.LeafColumn]] = {}
        for name in names:
            if name in SYSTEM_FIELDS:
                self._fields.append(SYSTEM_FIELDS[name])
                continue
            field = reader.field(name)
            arrow = field.to_arrow()
            if name in coded:
                arrow = arrow.with_type(pa.dictionary(pa.int32(), arrow.type))
            self._fields.append(arrow)
            if not reader.is_stored(field):
                self._missing[name] = arrow.type
                continue
            built = reader.built(field, name in coded)
            decoders.append(built.decoder)
            self._stored.append(name)
            decoded = arrow.type if name in coded else without_dictionaries(arrow.type)
            stored_fields.append(arrow.with_type(decoded))
            for file, columns in built.leaves.items():
                leaves.setdefault(file, []).extend(columns)
        self.schema = pa.schema(self._fields)
        self._decoded = pa.schema(stored_fields)
        self._required = [i for i, field in enumerate(stored_fields) if not field.nullable]
        self._plain = self._decoded.equals(self.schema)
        self._columns = kernels.Columns(decoders)
        self._leaves = list(leaves.items())
        #: rows at which a batch of wide values should end: within a page these need not be copied
        self.borders = sorted(
            {
                start
                for file, columns in self._leaves
                if file.is_local
                for leaf in columns
                if leaf.value_bytes >= _WIDE_VALUE
                for start in leaf.page_starts
            }
        )

    def read_range(self, begin: int, end: int) -> pa.RecordBatch:
        """Rows [begin, end) of the fragment, deleted ones included.

        Decoding runs without the interpreter lock. `kernels.BatchTooLargeError` asks for fewer rows.
        """
        with self._reader.placed():
            batch = self._decode(
                [(begin, end)], lambda overlays: self._columns.decode_range(begin, end, overlays)
            )
        if self._plain:
            return batch
        return self._complete(batch, end - begin, lambda name: self._reader.system_column(name, begin, end))

    def read_rows(self, rows: U32Array) -> pa.RecordBatch:
        """The rows at ascending offsets; an offset may repeat."""
        with self._reader.placed():
            batch = self._decode(
                ((int(row), int(row) + 1) for row in rows),
                lambda overlays: self._columns.decode_rows(rows, overlays),
            )
        if self._plain:
            return batch
        return self._complete(batch, len(rows), lambda name: self._reader.system_values(name, rows))

    def _decode(
        self, ranges: Iterable[tuple[int, int]], decode: Callable[[Overlays], kernels.DecodedBatch]
    ) -> pa.RecordBatch:
        """Fetch what `ranges` of rows need, where files are not local, and decode."""
        files = [(file, leaves) for file, leaves in self._leaves if not file.is_local]
        if not files:
            return self._import(decode([]))
        spans = list(ranges)
        overlays = [file.overlay(leaves, spans) for file, leaves in files]
        readers = {
            source.identity: (file, batch) for (file, _), (source, batch) in zip(files, overlays, strict=True)
        }
        while True:
            try:
                return self._import(decode(overlays))
            except kernels.NotResidentError as missing:  # only the data could tell that this is needed too
                source, offset, length = missing.args
                file, batch = readers[source]
                file.fetch(batch, offset, length)

    def _import(self, decoded: kernels.DecodedBatch) -> pa.RecordBatch:
        batch = pa.RecordBatch._import_from_c(decoded.address, self._decoded)
        for index in self._required:
            if batch.column(index).null_count:
                raise CorruptFileError(
                    "A column that must not be null holds nulls", column=self._stored[index]
                )
        return batch

    def _complete(self, batch: pa.RecordBatch, rows: int, system: Any) -> pa.RecordBatch:
        """Add the columns that are not stored, in their places, and restore dictionary types."""
        if not self._names:
            return batch
        arrays = []
        for field in self._fields:
            if field.name in SYSTEM_FIELDS:
                arrays.append(system(field.name))
            elif field.name in self._missing:
                arrays.append(pa.nulls(rows, field.type))
            else:
                arrays.append(to_declared(batch.column(self._stored.index(field.name)), field.type))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


__all__ = ["ROW_ADDRESS", "ROW_ID", "FragmentReader", "Projection"]
