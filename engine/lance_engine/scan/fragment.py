"""Reading the rows of one fragment: finding the columns in its data files and decoding them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine import kernels
from lance_engine.cache import METADATA
from lance_engine.errors import CorruptFileError, LanceError, Placed
from lance_engine.file.contents import FileContents
from lance_engine.file.decoding import Overlays, decode_fetched
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.metrics import Touched, count_read, note_pages
from lance_engine.scan.blobs import BlobReader
from lance_engine.scan.layout import ProjectedColumns, layout_of
from lance_engine.scan.selection import Selection
from lance_engine.scan.system import ROW_ADDRESS, ROW_CREATED_AT, ROW_ID, ROW_NUMBERS, SYSTEM_FIELDS
from lance_engine.scan.types import to_declared

if TYPE_CHECKING:
    from lance_engine.file.legacy import LegacyFile
    from lance_engine.file.legacy_fields import LegacyFieldBuilder
    from lance_engine.format.fragment import Fragment
    from lance_engine.index.zone_maps import ZoneMap
    from lance_engine.table.snapshot import Snapshot
    from lance_engine.types import Field

# Bytes from which on it matters whether a value is copied.
_WIDE_VALUE = 128

# What a page's description takes in memory, apart from its chunk index and dictionary.
_PAGE_BYTES = 1024

U32Array = npt.NDArray[np.uint32]


def _metadata_bytes(leaf: kernels.LeafColumn) -> int:
    """About the memory that the metadata of a column take: what its pages keep, and the pages themselves."""
    kept = sum(length for _, length in leaf.metadata_ranges(0, leaf.rows))
    return kept + _PAGE_BYTES * len(leaf.page_starts)


class BuiltField(NamedTuple):
    """A decoder, and per file the leaves whose bytes can be fetched ahead."""

    decoder: kernels.Field
    leaves: dict[FileContents, list[kernels.LeafColumn]]


class FragmentReader:
    """The columns of a fragment. Files are opened when a projection first needs them; threads may share."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self.fragment = fragment
        self._snapshot = snapshot
        self.evict()
        self._layout = layout_of(snapshot, fragment)

    def evict(self) -> None:
        """Forget all that was read from the files; projections handed out stay usable."""
        self._files: dict[int, FileReader | LegacyFile] = {}
        self._built: dict[tuple[str, bool], BuiltField] = {}
        self._projections: dict[tuple[tuple[str, ...], frozenset[str]], Projection] = {}
        self._zone_maps: dict[int, ZoneMap | None] = {}
        self._versions: dict[str, npt.NDArray[np.uint64]] = {}
        self._blobs: dict[int, BlobReader] = {}

    @property
    def rows(self) -> int:
        """Physical rows, deleted ones included."""
        return self.fragment.physical_rows

    @property
    def has_chunks(self) -> bool:
        """Whether values are stored in small chunks (from format 2.1 on), of which few are picked fast."""
        return all(file.storage_version not in ("0.1", "2.0") for file in self.fragment.files)

    def deleted(self) -> U32Array | None:
        """Sorted offsets of the deleted rows, None if there are none."""
        return self._snapshot.deleted_rows(self.fragment)

    def any_deleted(self, begin: int, end: int) -> bool:
        """Whether one of the rows [begin, end) is deleted."""
        deleted = self.deleted()
        if deleted is None:
            return False
        first, last = np.searchsorted(deleted, [begin, end])
        return bool(first < last)

    def projection(self, names: tuple[str, ...], coded: frozenset[str] = frozenset()) -> Projection:
        """The decoders of these columns, system columns included; those in `coded` give dictionaries."""
        key = (names, coded.intersection(names))
        found = self._projections.get(key)
        if found is None:
            with self.placed():
                found = self._projections.setdefault(key, Projection(self, *key))
        else:
            METADATA.hit(self)
        return found

    def field(self, name: str) -> Field:
        return self._snapshot.schema.field(name)

    def system_column(self, name: str, begin: int, end: int) -> pa.Array:
        """A system column of rows [begin, end)."""
        if name not in ROW_NUMBERS:
            return pa.array(self._row_versions(name)[begin:end])
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return pa.array(self._snapshot.row_ids(self.fragment, np.arange(begin, end, dtype=np.uint64)))
        first = self.fragment.id << 32
        return pa.array(np.arange(first + begin, first + end, dtype=np.uint64))

    def system_values(self, name: str, rows: U32Array) -> pa.Array:
        """A system column of certain rows."""
        if name not in ROW_NUMBERS:
            return pa.array(self._row_versions(name)[rows])
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return pa.array(self._snapshot.row_ids(self.fragment, rows))
        return pa.array(rows.astype(np.uint64) + np.uint64(self.fragment.id << 32))

    def _row_versions(self, name: str) -> npt.NDArray[np.uint64]:
        """The versions in which the physical rows were created or last changed."""
        found = self._versions.get(name)
        if found is None:
            created = name == ROW_CREATED_AT
            read = self._snapshot.created_at_versions if created else self._snapshot.last_updated_at_versions
            found = self._versions.setdefault(name, read(self.fragment))
            METADATA.grew(self, found.nbytes)
        return found

    def file(self, number: int) -> FileReader | LegacyFile:
        found = self._files.get(number)
        if found is None:
            data_file = self.fragment.files[number]
            store, path = self._snapshot.data_file_location(data_file)
            reader: FileReader | LegacyFile
            if data_file.storage_version == "0.1":
                from lance_engine.file.legacy import LegacyFile

                reader = LegacyFile(store, path, data_file.fields, size=data_file.file_size)
            else:
                reader = FileReader(store, path, size=data_file.file_size)
            found = self._files.setdefault(number, reader)
        return found

    def built(self, field: Field, coded: bool = False) -> BuiltField:
        """The decoder of a top-level field, as codes if asked; projections share it."""
        found = self._built.get((field.name, coded))
        if found is None:
            builder: FieldBuilder | LegacyFieldBuilder
            if self._layout.is_legacy(field):
                from lance_engine.file.legacy_fields import LegacyFieldBuilder

                builder = LegacyFieldBuilder(self._legacy_file, self.rows)
            else:
                builder = FieldBuilder(self._place, self.rows)
            decoder = builder.build(field, coded)
            found = self._built.setdefault((field.name, coded), BuiltField(decoder, builder.leaves))
            METADATA.grew(self, sum(map(_metadata_bytes, chain.from_iterable(builder.leaves.values()))))
        return found

    def tests(self, tests: Mapping[str, tuple[str, kernels.ValueTest]]) -> Projection | None:
        """What reads, by name, the truth of a test of each value of a column; None if one is impossible."""
        fields = []
        with self.placed():
            for name, (column, test) in tests.items():
                field = self.field(column)
                # The kernels would test binary JSON and not its text.
                if not self.is_stored(field) or field.is_json:
                    return None
                built = self.built(field)
                decoder = built.decoder.tested(test)
                if decoder is None:
                    return None
                fields.append((pa.field(name, pa.bool_()), BuiltField(decoder, built.leaves)))
            return Projection(self, tuple(tests), frozenset(), fields)

    def is_dictionary_coded(self, name: str) -> bool:
        """Whether all pages of a string column have a dictionary."""
        if name in SYSTEM_FIELDS:
            return False
        field = self.field(name)
        if field.logical_type not in ("string", "large_string") or not self.is_stored(field):
            return False
        leaves = [leaf for leaves in self.built(field).leaves.values() for leaf in leaves]
        return bool(leaves) and all(leaf.gives_codes for leaf in leaves)

    def fetch_metadata(self, columns: Mapping[int, Sequence[int]]) -> None:
        """Fetch what files say about some of their columns, all columns of a file together."""
        for number, indices in columns.items():
            file = self.file(number)
            if isinstance(file, FileReader):
                file.fetch_metadata(indices)

    def _place(self, field: Field) -> tuple[FileReader, int]:
        number, column = self._layout.places[field.id]
        file = self.file(number)
        if not isinstance(file, FileReader):
            raise CorruptFileError("Parts of the column are stored in unlike file versions", path=file.path)
        return file, column

    def _legacy_file(self, field: Field) -> LegacyFile:
        number, _ = self._layout.places[field.id]
        file = self.file(number)
        if isinstance(file, FileReader):
            raise CorruptFileError("Parts of the column are stored in unlike file versions", path=file.path)
        return file

    def holds(self, leaf: Field) -> bool:
        """Whether the column of a leaf exists in the files; if not, all its values are null."""
        return leaf.id in self._layout.places

    def zone_map(self, leaf: Field, name: str) -> ZoneMap | None:
        """The zone map of a stored leaf outside of lists, if it has one; `name` is its path, for errors."""
        if leaf.is_json:
            return None  # the order of binary values is not that of their texts
        if leaf.id not in self._zone_maps:
            from lance_engine.index.zone_maps import read_zone_map

            with self.placed():
                if self._layout.is_legacy(leaf):
                    return None
                file, column = self._place(leaf)
                found = read_zone_map(file, column, leaf, name)
                if found is not None and found.rows != self.rows:
                    raise CorruptFileError(
                        f"The column has {found.rows} rows, its fragment {self.rows}",
                        path=file.path,
                        column=name,
                    )
            self._zone_maps[leaf.id] = found
            if found is not None:
                METADATA.grew(self, found.minimum.nbytes + found.maximum.nbytes + found.null_count.nbytes)
            return found
        return self._zone_maps.get(leaf.id)

    def blobs(self, name: str, descriptors: pa.StructArray) -> pa.Array:
        """The bytes that blobs of a top-level column lead to."""
        with self.placed():
            leaf = next(leaf for leaf in self.field(name).leaves() if leaf.is_blob_v2)
            number, _ = self._layout.places[leaf.id]
            if number not in self._blobs:
                self._blobs[number] = BlobReader(self._snapshot, self.fragment.files[number])
            try:
                return self._blobs[number].read(descriptors)
            except LanceError as error:
                raise error.at(column=name) from error.__cause__
            except FileNotFoundError as error:
                raise CorruptFileError(
                    "A file of blobs is missing",
                    path=str(error.filename or error),
                    column=name,
                    remedy="Restore the file from a copy, or leave the column out",
                ) from error

    def is_stored(self, field: Field) -> bool:
        """Whether the column exists in the files; if not, all its values are null."""
        return self._layout.is_stored(field)

    def projected(self, names: tuple[str, ...], coded: frozenset[str]) -> ProjectedColumns:
        """What columns are like in this fragment."""
        return self._layout.projected(names, coded)

    def placed(self) -> Placed:
        """A block that adds to errors where they happened, and makes those of the kernels ours."""
        return Placed(self._place_error)

    def _place_error(self, error: BaseException) -> LanceError | None:
        if isinstance(error, LanceError):
            return error.at(version=self._snapshot.version, fragment=self.fragment.id)
        if not isinstance(error, kernels.CorruptDataError):
            return None
        what, column, page = error.args
        paths = [file.path for file in self._files.values()]
        return CorruptFileError(
            what,
            path=paths[0] if len(paths) == 1 else self._snapshot.uri,
            version=self._snapshot.version,
            fragment=self.fragment.id,
            column=column,
            page=page,
            remedy="Restore the file from a copy, or go back to a version that does not use it",
        )


class Projection:
    """Some columns of a fragment, or tests of columns, in a fixed order."""

    def __init__(
        self,
        reader: FragmentReader,
        names: tuple[str, ...],
        coded: frozenset[str],
        tests: Sequence[tuple[pa.Field, BuiltField]] = (),
    ) -> None:
        self._reader = reader
        self._names = names
        if tests:
            self.schema = self._decoded = pa.schema([field for field, _ in tests])
            self._missing: frozenset[str] = frozenset()
            #: which of the decoded columns must not hold nulls
            self.required: list[int] = []
            self._plain = True
            fields = [built for _, built in tests]
        else:
            projected = reader.projected(names, coded)
            self.schema, self._decoded = projected.schema, projected.decoded
            self._missing, self.required = projected.missing, projected.required
            self._plain = projected.is_plain
            reader.fetch_metadata(projected.columns)
            fields = [reader.built(field, name in coded) for name, field in projected.stored]
        decoders: list[kernels.Field] = []
        leaves: dict[FileContents, list[kernels.LeafColumn]] = {}
        for built in fields:
            decoders.append(built.decoder)
            for file, columns in built.leaves.items():
                leaves.setdefault(file, []).extend(columns)
        self._columns = kernels.Columns(decoders)
        self._leaves = list(leaves.items())
        self._is_local = all(file.is_local for file in leaves)
        #: decodes these columns without further ado, if that is possible
        self.decoders = self._columns if self._plain and self._is_local else None
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

    def read(self, selection: Selection) -> pa.RecordBatch:
        """The rows of a selection. `kernels.BatchTooLargeError` asks for fewer rows."""
        note_pages(lambda: self.pages_of(selection))
        if selection.is_range:
            return self.read_range(selection.begin, selection.end)
        if selection.prefers_rows:
            return self.read_rows(selection.offsets)
        ranges = selection.ranges
        with self._reader.placed():
            batch = self._decode(
                ranges.tolist(), lambda overlays: self._columns.decode_ranges(ranges, overlays)
            )
        if self._plain:
            return batch
        return self._complete(
            batch, selection.count, lambda name: self._reader.system_values(name, selection.offsets)
        )

    def pages_of(self, selection: Selection) -> Iterator[Touched]:
        """The pages of every column that a selection touches."""
        for _, leaves in self._leaves:
            for leaf in leaves:
                starts = np.asarray(leaf.page_starts[:-1], dtype=np.int64)
                if selection.prefers_rows:
                    pages = np.unique(np.searchsorted(starts, selection.offsets, "right") - 1)
                else:
                    first = np.searchsorted(starts, selection.ranges[:, 0], "right") - 1
                    last = np.searchsorted(starts, selection.ranges[:, 1], "left")
                    pages = np.unique(
                        np.concatenate([np.arange(*found) for found in zip(first, last, strict=True)])
                    )
                yield (self._reader.fragment.id, leaf.name), len(starts), pages.tolist()

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
        return self._import(decode_fetched(self._leaves, ranges, decode))

    def _import(self, decoded: kernels.DecodedBatch) -> pa.RecordBatch:
        if self._is_local:
            count_read(0, decoded.bytes_read)
        batch = pa.RecordBatch._import_from_c(decoded.address, self._decoded)
        for index in self.required:
            if batch.column(index).null_count:
                raise CorruptFileError(
                    "A column that must not be null holds nulls", column=self._decoded.field(index).name
                )
        return batch

    def _complete(self, batch: pa.RecordBatch, rows: int, system: Any) -> pa.RecordBatch:
        """Add the columns that are not stored, in their places, and restore dictionary types."""
        if not self._names:
            return batch
        arrays = []
        for field in self.schema:
            if field.name in SYSTEM_FIELDS:
                arrays.append(system(field.name))
            elif field.name in self._missing:
                arrays.append(pa.nulls(rows, field.type))
            else:
                array = batch.column(self._decoded.names.index(field.name))
                arrays.append(self._declared(array, field))
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _declared(self, array: pa.Array, field: pa.Field) -> pa.Array:
        with self._reader.placed():
            try:
                return to_declared(array, field.type, partial(self._reader.blobs, field.name))
            except kernels.InvalidJsonError as error:
                raise kernels.CorruptDataError(
                    f"A JSON value contradicts itself: {error.args[0]}", field.name, None
                ) from error


__all__ = ["ROW_ADDRESS", "ROW_ID", "FragmentReader", "Projection"]
