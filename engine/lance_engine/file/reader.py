"""One data file of version 2.x: opening it, and the metadata of its columns."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from lance_engine import kernels
from lance_engine.encodings.custom import custom_page
from lance_engine.encodings.leaf import LeafShape
from lance_engine.errors import CorruptFileError
from lance_engine.file.contents import FileContents
from lance_engine.format.container import (
    FOOTER_SIZE,
    ColumnMetadata,
    EncodedMessage,
    PageMetadata,
    parse_column_metadata,
    parse_footer,
)
from lance_engine.format.pb import file_pb2
from lance_engine.metrics import count_read

if TYPE_CHECKING:
    from lance_engine.io.store import Store


class FileReader(FileContents):
    """A data file of version 2.x, opened. The metadata of a column is read when it is first used."""

    def __init__(self, store: Store, path: str, *, size: int | None = None) -> None:
        """Open `path`; passing `size` in bytes saves a request."""
        super().__init__(store, path, size=size)
        with self.placed():
            self.footer = parse_footer(self.read_tail(FOOTER_SIZE), self.size)
        self._columns: dict[int, ColumnMetadata] = {}
        self._opened: dict[int, tuple[int, int]] = {}

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
            try:
                return file_pb2.FileDescriptor.FromString(self.global_buffer(0))
            except DecodeError as error:
                raise CorruptFileError("The schema of the file cannot be parsed") from error

    def global_buffer(self, number: int) -> bytes:
        """A buffer of the whole file; number 0 is its descriptor."""
        with self.placed():
            count = self.footer.num_global_buffers
            if not 0 <= number < count:
                raise CorruptFileError(f"Global buffer {number} was requested, but the file has {count}")
            table = self.read(self.footer.global_table_position + 16 * number, 16)
            position, size = kernels.parse_table_entry(table, self.size)
            return self.read(position, size)

    def column_metadata(self, index: int) -> ColumnMetadata:
        """Pages and encodings of one column; parsed on first use."""
        column_metadata = self._columns.get(index)
        if column_metadata is not None:
            return column_metadata
        self._check_index(index)
        with self.placed():
            metadata = parse_column_metadata(self.read(*self._place_of(index)), self.size)
        return self._columns.setdefault(index, metadata)

    def fetch_metadata(self, indices: Iterable[int]) -> None:
        """Load the metadata of some columns together, so that using them costs no request."""
        if self.is_local:
            return
        wanted = [index for index in indices if 0 <= index < self.num_columns and index not in self._columns]
        with self.placed():
            self.fetch_lasting([(self.footer.column_table_position + 16 * index, 16) for index in wanted])
            self.fetch_lasting([self._place_of(index) for index in wanted])

    def open_pages(self, index: int) -> list[kernels.Page]:
        """The pages of a column of version 2.1 or 2.2."""
        return kernels.column_pages(self.source, *self._metadata_at(index), self._custom_page)

    def open_array_pages(
        self, index: int, shape: LeafShape, *, is_dictionary: bool, is_blob: bool
    ) -> list[kernels.Page]:
        """The pages of a column of version 2.0 with values of `shape`.

        `is_dictionary` means that it has a dictionary type, not only dictionary encoding.
        """
        place = self._metadata_at(index)
        return kernels.array_pages(
            self.source, *place, shape.kind, shape.width, is_dictionary, is_blob, self._custom_page
        )

    def open_list_pages(self, index: int) -> list[tuple[int, kernels.ArrayDecoder, int, int]]:
        """The pages of a column of version 2.0 that holds the offsets of lists."""
        return kernels.list_pages(self.source, *self._metadata_at(index))

    def array_kind(self, index: int) -> str | None:
        """The outermost encoding of a column of version 2.0, such as ``list``; None without pages."""
        return kernels.array_column_kind(self.source, *self._metadata_at(index))

    def _metadata_at(self, index: int) -> tuple[int, int]:
        """The position of the metadata of a column, which is loaded into memory."""
        metadata = self._opened.get(index)
        if metadata is not None:
            return metadata
        self._check_index(index)
        position, size = self._place_of(index)
        if self.is_local:
            count_read(0, size)
        else:
            self.fetch_lasting([(position, size)])
        return self._opened.setdefault(index, (position, size))

    def _custom_page(
        self,
        number: int,
        name: str,
        message: bytes,
        rows: int,
        buffers: list[tuple[int, int]],
        priority: int,
    ) -> kernels.Page | None:
        """A page with a custom encoding."""
        with self.placed(page=number):
            return custom_page(PageMetadata(rows, tuple(buffers), EncodedMessage(name, message), priority))

    def _check_index(self, index: int) -> None:
        if not 0 <= index < self.footer.num_columns:
            raise CorruptFileError(
                f"The manifest refers to column number {index}, but the file has {self.footer.num_columns}",
                path=self.path,
            )

    def _place_of(self, index: int) -> tuple[int, int]:
        """Position and size of the metadata of a column. Other columns, maybe many, stay unread."""
        entry = self.read(self.footer.column_table_position + 16 * index, 16)
        with self.placed():
            return kernels.parse_table_entry(entry, self.size)
