"""The columns of the data files of a fragment."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from lance_engine.file.reader import FileReader
from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.table.snapshot import Snapshot
from lance_engine.weak_identity import WeakIdentityDict

# This many files of a version stay open between inspections, if they have no more columns each.
_CACHED_FILES, _CACHED_COLUMNS = 64, 256

_open_files: WeakIdentityDict[Snapshot, dict[str, FileReader]] = WeakIdentityDict()


class HeldColumn(NamedTuple):
    """Column number `column` of a file, which holds a field."""

    reader: FileReader
    field_id: int
    column: int


def held_columns(snapshot: Snapshot, fragment: Fragment, wanted: Container[int]) -> Iterator[HeldColumn]:
    """The columns that hold the fields with the ids `wanted`; files without any of them are not opened."""
    for file in fragment.files:
        held = [
            (field_id, index)
            for field_id, index in zip(file.fields, file.column_indices, strict=False)
            if field_id in wanted and index >= 0
        ]
        if not held:
            continue
        reader = _opened(snapshot, file)
        reader.fetch_metadata(index for _, index in held)
        for field_id, index in held:
            yield HeldColumn(reader, field_id, index)


def _opened(snapshot: Snapshot, file: DataFile) -> FileReader:
    store, path = snapshot.data_file_location(file)
    place = f"{store.uri}/{path}"
    cache = _open_files.setdefault(snapshot, {})
    opened = cache.get(place)
    if opened is not None:
        return opened
    reader = FileReader(store, path, size=file.file_size)
    if len(cache) < _CACHED_FILES and reader.num_columns <= _CACHED_COLUMNS:
        cache[place] = reader
    return reader
