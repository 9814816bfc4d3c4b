"""The files of an index segment, opened on demand, with errors that contain a remedy."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.fetch import MOST_AHEAD, each_ahead
from lance_engine.file.contents import FileContents, fetch_ends
from lance_engine.file.reader import FileReader
from lance_engine.file.table import FileTable

if TYPE_CHECKING:
    from lance_engine.format.index_section import IndexSegment
    from lance_engine.table.snapshot import Snapshot


class _WithFiles(Protocol):
    @property
    def files(self) -> SegmentFiles: ...


HasFiles = TypeVar("HasFiles", bound=_WithFiles)
Opened = TypeVar("Opened")


class SegmentFiles:
    """Opens files of a segment."""

    def __init__(self, snapshot: Snapshot, segment: IndexSegment) -> None:
        self.segment = segment
        # A separate snapshot: caches by snapshot contain these files, and would never release it.
        self._snapshot = snapshot.with_manifest(snapshot.manifest)
        self._sizes = dict(segment.files)
        # Fetched data of these files is cached as long as they are open.
        self._ends: list[FileContents] = []
        self.key: Hashable = (snapshot.uri, segment.base_id, segment.uuid)

    @cached_property
    def is_local(self) -> bool:
        """Whether the files are mapped, so that nothing has to be fetched; checked once."""
        with index_errors(self.segment.name):
            store, path = self._snapshot.index_file_location(self.segment, "any")
            return store.local_path(path) is not None

    def fetch_ends(self) -> None:
        """Fetch the ends of the files of a remote segment together: opening a file then costs no request."""
        if self._ends or self.is_local:
            return
        with index_errors(self.segment.name):
            for name, size in list(self._sizes.items())[:MOST_AHEAD]:
                store, path = self._snapshot.index_file_location(self.segment, name)
                self._ends.append(FileContents(store, path, size=size))
            fetch_ends(self._ends)

    def exists(self, name: str) -> bool:
        """Whether the segment has a file of this name; asks the storage where the manifest lists none."""
        if self._sizes:
            return name in self._sizes
        with index_errors(self.segment.name):
            store, path = self._snapshot.index_file_location(self.segment, name)
            return store.exists(path)

    def open(self, name: str, columns: Sequence[str] = ()) -> FileTable:
        """The file `name` of the segment, which must have some columns.

        CorruptFileError if it is missing or damaged, UnsupportedFeatureError if it has another layout: old
        releases wrote files of version 0.2 with other column names.
        """
        with index_errors(self.segment.name):
            store, path = self._snapshot.index_file_location(self.segment, name)
            table = FileTable(FileReader(store, path, size=self._sizes.get(name)))
            missing = [column for column in columns if column not in table.schema.names]
            if missing:
                raise UnsupportedFeatureError(f"Column '{missing[0]}' not found in the file", path=path)
            return table


def opened_together(
    segments: Sequence[HasFiles], opener: Callable[[HasFiles], Opened]
) -> list[tuple[HasFiles, Opened]]:
    """Segments with the result of `opener` for each; remote ones are opened in parallel."""
    if len(segments) > 1 and any(not segment.files.is_local for segment in segments):
        return list(zip(segments, each_ahead(opener, segments), strict=True))
    return [(segment, opener(segment)) for segment in segments]


@contextmanager
def index_errors(name: str) -> Iterator[None]:
    """Add the index of a damaged file to the error, and how to continue without it."""
    try:
        yield
    except LanceError as error:
        if "index" in error.place:
            raise
        # Files of old releases are not damaged: searches continue without the index.
        kind = UnsupportedFeatureError if isinstance(error, UnsupportedFeatureError) else CorruptFileError
        raise kind(
            f"A file of the index '{name}' cannot be read: {error.message}",
            remedy=f"Drop the index with drop_index('{name}'), or rebuild it with create_index(..., "
            f"replace=True)",
            index=name,
            **error.place,
        ) from error


def whole_numbers(column: pa.Array) -> npt.NDArray[Any]:
    """A column of unsigned numbers; CorruptFileError if it is invalid, or holds nulls."""
    if not pa.types.is_unsigned_integer(column.type) or column.null_count:
        raise CorruptFileError("A column must contain unsigned integers without nulls")
    numbers: npt.NDArray[Any] = column.to_numpy()
    return numbers


def number_in(metadata: Mapping[str, str], key: str, default: int, limit: int) -> int:
    """The entry `key` as a number from 1 to `limit`; CorruptFileError if it is invalid."""
    text = metadata.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= limit):
        raise CorruptFileError(f"The metadata '{key}' of the index is '{text[:20]}'")
    return int(text)
