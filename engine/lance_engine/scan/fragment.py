"""Reads the rows of a fragment: finds its columns in its data files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.arrow_values import of_numpy
from lance_engine.cache import METADATA
from lance_engine.encodings.faults import fault_of
from lance_engine.errors import CorruptFileError, LanceError, Placed
from lance_engine.file.fields import FieldBuilder
from lance_engine.file.reader import FileReader
from lance_engine.scan.layout import layout_of
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.system import ROW_CREATED_AT, ROW_ID, ROW_NUMBERS
from lance_engine.scan.touched import FragmentRows

if TYPE_CHECKING:
    from lance_engine.file.legacy import LegacyFile
    from lance_engine.file.legacy_fields import LegacyFieldBuilder
    from lance_engine.file.zone_map import ZoneMap
    from lance_engine.format.fragment import Fragment
    from lance_engine.scan.blobs import BlobReader
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

U32Array = npt.NDArray[np.uint32]
_FROM_0 = np.zeros(1, dtype=np.int64)


class FragmentReader(RowsReader):
    """The columns of a fragment."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        super().__init__(snapshot, layout_of(snapshot, fragment))
        self.fragment = fragment
        self._looked_up = False
        self._forget_files()

    def meet(self) -> bool:
        """Whether single rows were looked up before; records that this has happened."""
        met, self._looked_up = self._looked_up, True
        return met

    def evict(self) -> None:
        super().evict()
        self._forget_files()

    def _forget_files(self) -> None:
        self._files: dict[int, FileReader | LegacyFile] = {}
        self._zone_maps: dict[int, ZoneMap | None] = {}
        self._versions: dict[str, npt.NDArray[np.uint64]] = {}
        self._blobs: dict[int, BlobReader] = {}

    @property
    def rows(self) -> int:
        return self.fragment.physical_rows

    @property
    def fragment_rows(self) -> FragmentRows:
        return FragmentRows((self.fragment.id,), _FROM_0)

    @property
    def has_chunks(self) -> bool:
        return all(file.storage_version not in ("0.1", "2.0") for file in self.fragment.files)

    def deleted(self) -> U32Array | None:
        return self._snapshot.deleted_rows(self.fragment)

    def system_column(self, name: str, begin: int, end: int) -> pa.Array:
        if name not in ROW_NUMBERS:
            return of_numpy(self._row_versions(name)[begin:end])
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return of_numpy(self._snapshot.row_ids(self.fragment, np.arange(begin, end, dtype=np.uint64)))
        first = self.fragment.id << 32
        return of_numpy(np.arange(first + begin, first + end, dtype=np.uint64))

    def system_values(self, name: str, rows: U32Array) -> pa.Array:
        if name not in ROW_NUMBERS:
            return of_numpy(self._row_versions(name)[rows])
        if name == ROW_ID and self._snapshot.has_stable_row_ids:
            return of_numpy(self._snapshot.row_ids(self.fragment, rows))
        return of_numpy(rows.astype(np.uint64) + np.uint64(self.fragment.id << 32))

    def _row_versions(self, name: str) -> npt.NDArray[np.uint64]:
        """The versions in which the physical rows were created or last changed."""
        row_versions = self._versions.get(name)
        if row_versions is None:
            created = name == ROW_CREATED_AT
            read = self._snapshot.created_at_versions if created else self._snapshot.last_updated_at_versions
            row_versions = self._versions.setdefault(name, read(self.fragment))
            METADATA.grew(self, row_versions.nbytes)
        return row_versions

    def file(self, number: int) -> FileReader | LegacyFile:
        file = self._files.get(number)
        if file is None:
            data_file = self.fragment.files[number]
            store, path = self._snapshot.data_file_location(data_file)
            reader: FileReader | LegacyFile
            if data_file.storage_version == "0.1":
                from lance_engine.file.legacy import LegacyFile

                reader = LegacyFile(store, path, data_file.fields)
            else:
                reader = FileReader(store, path, size=data_file.file_size)
            file = self._files.setdefault(number, reader)
        return file

    def _builder(self, field: Field) -> FieldBuilder | LegacyFieldBuilder:
        if self._layout.is_legacy(field):
            from lance_engine.file.legacy_fields import LegacyFieldBuilder

            # Each file repeats the parents of its own leaves, including lists that later files also contain.
            return LegacyFieldBuilder(self._legacy_file(next(field.leaves())), self.rows)
        # If a file has more rows, the manifest determines how many count; if it has fewer, those can be read.
        return FieldBuilder(self._place, self.rows, may_differ=True)

    def _fetch_metadata(self, columns: Mapping[int, Sequence[int]]) -> None:
        for number, indices in columns.items():
            file = self.file(number)
            if isinstance(file, FileReader):
                file.fetch_metadata(indices)

    def _place(self, field: Field) -> tuple[FileReader, int]:
        number, column = self._layout.places[field.id]
        file = self.file(number)
        if not isinstance(file, FileReader):
            raise CorruptFileError("The column is stored in different file versions", path=file.path)
        return file, column

    def _legacy_file(self, field: Field) -> LegacyFile:
        number, _ = self._layout.places[field.id]
        file = self.file(number)
        if isinstance(file, FileReader):
            raise CorruptFileError("The column is stored in different file versions", path=file.path)
        return file

    def holds(self, leaf: Field) -> bool:
        """Whether the column of a leaf exists in the files; otherwise all its values are null."""
        return leaf.id in self._layout.places

    def zone_map(self, leaf: Field, name: str) -> ZoneMap | None:
        """The zone map of a stored leaf outside of lists, if it has one; `name` is its path, for errors."""
        if leaf.is_json:
            return None  # binary values are ordered differently than their texts
        if leaf.id not in self._zone_maps:
            from lance_engine.file.zone_map import read_zone_map

            with self.placed():
                if self._layout.is_legacy(leaf):
                    return None
                file, column = self._place(leaf)
                zone_map = read_zone_map(file, column, leaf, name)
                if zone_map is not None and zone_map.rows != self.rows:
                    zone_map = None  # it covers rows that do not count, or not all that do
            self._zone_maps[leaf.id] = zone_map
            if zone_map is not None:
                METADATA.grew(
                    self, zone_map.minimum.nbytes + zone_map.maximum.nbytes + zone_map.null_count.nbytes
                )
            return zone_map
        return self._zone_maps.get(leaf.id)

    def blobs(self, leaf: Field, descriptors: pa.StructArray) -> pa.Array:
        with self.placed():
            number, _ = self._layout.places[leaf.id]
            if number not in self._blobs:
                from lance_engine.scan.blobs import BlobReader

                self._blobs[number] = BlobReader(self._snapshot, self.fragment.files[number])
            try:
                return self._blobs[number].read(descriptors)
            except FileNotFoundError as error:
                place = error.place.get("path") if isinstance(error, LanceError) else error.filename
                raise CorruptFileError(
                    "A file of blobs is missing",
                    path=str(place or error),
                    column=leaf.name,
                    remedy="Restore the file from a backup, or exclude the column",
                ) from error
            except LanceError as error:
                raise error.at(column=leaf.name) from error.__cause__

    def placed(self) -> Placed:
        return Placed(self._place_error)

    def _place_error(self, error: BaseException) -> LanceError | None:
        if isinstance(error, LanceError):
            return error.at(version=self._snapshot.version, fragment=self.fragment.id)
        paths = [file.path for file in self._files.values()]
        fault = fault_of(
            error,
            path=paths[0] if len(paths) == 1 else self._snapshot.uri,
            version=self._snapshot.version,
            fragment=self.fragment.id,
        )
        if fault is not None:
            fault.remedy = "Restore the file from a backup, or use a version that does not need it"
        return fault
