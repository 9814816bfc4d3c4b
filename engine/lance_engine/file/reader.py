"""One data file of version 2.x: opening it, and its columns as native decoders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, LanceError, UnsupportedFeatureError
from lance_engine.format.container import (
    COLUMN_ENCODING,
    FOOTER_SIZE,
    ColumnMetadata,
    Footer,
    PageMetadata,
    parse_column_metadata,
    parse_footer,
    parse_offset_table,
)
from lance_engine.format.pb import file_pb2
from lance_engine.io.coalesce import coalesce

if TYPE_CHECKING:
    from lance_engine.io.store import Store

# The end of a remote file is read in one request of this size: most files' footer and column metadata fit.
TAIL_SIZE = 64 << 10


class FileReader:
    """A data file, opened.

    Local files are mapped into memory. Of others, only the byte ranges asked for are fetched: the metadata of
    columns once, when they are first used, and the data of a batch with each batch.
    """

    def __init__(self, store: Store, path: str, *, size: int | None = None) -> None:
        """Open `path`; `size` in bytes saves a request where the caller knows it."""
        self.path = path
        self._store = store
        local = store.local_path(path)
        self._segments: kernels.SegmentSource | None = None
        with self.placed():
            actual = store.size(path) if local is not None or size is None else size
            if size is not None and size != actual:
                raise CorruptFileError(
                    f"The file has {actual} bytes, the manifest says {size}",
                    remedy="Restore the file from a copy, or go back to a version that does not use it",
                )
            self.size = actual
            self.source: kernels.Source
            if local is not None:
                self.source = kernels.MappedSource.open(local)
            else:
                self.source = self._segments = kernels.SegmentSource(self.size)
            self.footer = self._read_footer()
        self._columns: dict[int, ColumnMetadata] = {}
        self._table: tuple[tuple[int, int], ...] | None = None

    @property
    def version(self) -> str:
        """File version, such as ``2.1``."""
        return self.footer.version

    @property
    def num_columns(self) -> int:
        return self.footer.num_columns

    @cached_property
    def descriptor(self) -> Any:
        """The `FileDescriptor` message of the file: its schema and number of rows."""
        with self.placed():
            if not self.footer.num_global_buffers:
                raise CorruptFileError("The file has no schema")
            table = self.read(self.footer.global_table_position, 16)
            ((position, size),) = parse_offset_table(table, 1, self.size)
            try:
                return file_pb2.FileDescriptor.FromString(self.read(position, size))
            except DecodeError as error:
                raise CorruptFileError("The schema of the file cannot be parsed") from error

    def column_metadata(self, index: int) -> ColumnMetadata:
        """Pages and encodings of one column; parsed on first use."""
        found = self._columns.get(index)
        if found is not None:
            return found
        if not 0 <= index < self.footer.num_columns:
            raise CorruptFileError(
                f"The manifest asks for column number {index}, the file has {self.footer.num_columns}",
                path=self.path,
            )
        with self.placed():
            if self._table is None:
                table = self.read(*self.footer.table_range)
                self._table = parse_offset_table(table, self.footer.num_columns, self.size)
            metadata = parse_column_metadata(self.read(*self._table[index]), self.size)
        return self._columns.setdefault(index, metadata)

    def pages(self, index: int, column: str) -> list[PageMetadata]:
        """The pages of a column whose own encoding is plain; `column` is its path, for errors."""
        metadata = self.column_metadata(index)
        with self.placed(column=column):
            if metadata.encoding.name != COLUMN_ENCODING:
                raise UnsupportedFeatureError(f"The column encoding '{metadata.encoding.name}' is not known")
        return list(metadata.pages)

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file; fetched and kept where the file is not local."""
        if self._segments is not None and not self._segments.holds(offset, length):
            self._fetch(self._segments, [(offset, length)])
        return self.source.read(offset, length)

    @property
    def is_local(self) -> bool:
        """Whether the file is mapped, so that nothing needs to be fetched."""
        return self._segments is None

    def overlay(
        self, leaves: Sequence[kernels.LeafColumn], ranges: Sequence[tuple[int, int]]
    ) -> tuple[kernels.Source, kernels.Source]:
        """Fetch what decoding `ranges` of rows of `leaves` needs.

        Gives the source of the file and the one to read in its place. Bytes whose place only the data can
        tell are not among them: a decoder that misses them says so.
        """
        if self._segments is None:
            return self.source, self.source
        bounds = [(leaf, begin, end) for leaf in leaves for begin, end in ranges]
        self._fetch(self._segments, [span for leaf, *rows in bounds for span in leaf.metadata_ranges(*rows)])
        batch = kernels.SegmentSource(self._segments)
        self._fetch(batch, [span for leaf, *rows in bounds for span in leaf.data_ranges(*rows)])
        return self._segments, batch

    def fetch(self, target: kernels.Source, offset: int, length: int) -> None:
        """Fetch a range that a decoder missed into the source made by `overlay`."""
        if isinstance(target, kernels.SegmentSource):
            self._fetch(target, [(offset, length)])

    def _fetch(self, target: kernels.SegmentSource, ranges: Sequence[tuple[int, int]]) -> None:
        missing = coalesce(span for span in ranges if not target.holds(*span))
        if not missing:
            return
        for (offset, _), data in zip(missing, self._store.read_ranges(self.path, missing), strict=True):
            target.add(offset, data)

    def _read_footer(self) -> Footer:
        length = min(self.size, FOOTER_SIZE if self._segments is None else TAIL_SIZE)
        return parse_footer(self.read(self.size - length, length), self.size)

    @contextmanager
    def placed(self, **place: object) -> Iterator[None]:
        """Turn errors of the kernels into ours and add where they happened."""
        try:
            yield
        except LanceError as error:
            raise error.at(path=self.path, **place) from error.__cause__
        except kernels.CorruptDataError as error:
            what, column, page = error.args
            raise CorruptFileError(what, path=self.path).at(column=column, page=page).at(**place) from error
        except FileNotFoundError as error:
            raise CorruptFileError(
                "A data file of the dataset is missing",
                path=self.path,
                remedy="Restore the file from a copy, or go back to a version that does not use it",
            ) from error
