"""The container of a 2.x data file: footer, tables of offsets, column metadata (format 2.0, container).

Bytes to frozen dataclasses; nothing here opens a file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from google.protobuf import any_pb2
from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import file_v2_pb2

MAGIC = b"LANC"
FOOTER_SIZE = 40
# Page buffers and global buffers start at multiples of this; the gaps are filled with PADDING.
ALIGNMENT = 64
PADDING = b"\x48"

# What the last bytes of a file say -> the version users know.
_VERSIONS = {(0, 3): "2.0", (2, 0): "2.0", (2, 1): "2.1", (2, 2): "2.2"}

_FOOTER = struct.Struct("<QQQIIHH4s")

COLUMN_ENCODING = "lance.encodings.ColumnEncoding"

# Descriptions of encodings that are kept, because many pages and columns have the same.
_KEPT_ENCODINGS = 256


@dataclass(frozen=True, slots=True)
class Footer:
    """The last 40 bytes of a file; positions are absolute."""

    column_metadata_position: int
    column_table_position: int
    global_table_position: int
    num_global_buffers: int
    num_columns: int
    version: str


def parse_footer(data: bytes, file_size: int) -> Footer:
    """Parse a footer from the last bytes of a file of `file_size` bytes.

    CorruptFileError for a file that is no Lance file or whose tables do not lie inside it,
    UnsupportedFeatureError for a version that is not known.
    """
    if len(data) < FOOTER_SIZE or data[-4:] != MAGIC:
        raise CorruptFileError(
            "This is not a Lance data file, or it is truncated: it does not end in 'LANC'",
            remedy="Restore the file from a backup, or use a version that does not need it",
        )
    columns, column_table, global_table, num_global, num_columns, major, minor, _ = _FOOTER.unpack(
        data[-FOOTER_SIZE:]
    )
    version = _VERSIONS.get((major, minor))
    if version is None:
        raise UnsupportedFeatureError(
            f"File version {major}.{minor} is not supported",
            remedy="Rewrite the dataset with version 2.1, or use a release that knows this version",
        )
    end = file_size - FOOTER_SIZE
    tables_fit = column_table + 16 * num_columns <= end and global_table + 16 * num_global <= end
    if not (columns <= column_table <= end and tables_fit):
        raise CorruptFileError("The footer points outside the file", remedy="Restore the file from a backup")
    return Footer(columns, column_table, global_table, num_global, num_columns, version)


def serialize_footer(
    columns: int,
    column_table: int,
    global_table: int,
    num_global_buffers: int,
    num_columns: int,
    version: tuple[int, int],
) -> bytes:
    """The last 40 bytes of a file: where its tables start, how long they are, and its version."""
    counts = (num_global_buffers, num_columns)
    return _FOOTER.pack(columns, column_table, global_table, *counts, *version, MAGIC)


def footer_version(version: tuple[int, int]) -> tuple[int, int]:
    """What footers of files of a version say; 2.0 is told as 0.3."""
    return (0, 3) if version == (2, 0) else version


def direct_encoding(name: str, value: bytes) -> file_v2_pb2.Encoding:
    """An encoding stored in place: the name of a message type and its bytes."""
    message = any_pb2.Any(type_url=f"/{name}", value=value)
    return file_v2_pb2.Encoding(
        direct=file_v2_pb2.DirectEncoding(encoding=message.SerializeToString(deterministic=True))
    )


def parse_offset_table(data: bytes, count: int, limit: int) -> tuple[tuple[int, int], ...]:
    """Parse `count` pairs of (position, size), each of which must lie before `limit`."""
    if len(data) != 16 * count:
        raise CorruptFileError("A table of offsets is truncated")
    numbers = struct.unpack(f"<{2 * count}Q", data)
    pairs = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    if any(position + size > limit for position, size in pairs):
        raise CorruptFileError("A table of offsets points outside the file")
    return pairs


@dataclass(frozen=True, slots=True)
class EncodedMessage:
    """A protobuf `Any`: the name of a message type, without what stands before the slash, and its bytes."""

    name: str
    value: bytes


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """One page: its rows, the (offset, length) of its buffers, and its encoding."""

    rows: int
    buffers: tuple[tuple[int, int], ...]
    encoding: EncodedMessage
    priority: int


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """One column: its pages in row order and the buffers that belong to the column as a whole."""

    encoding: EncodedMessage
    pages: tuple[PageMetadata, ...]
    buffers: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        return sum(page.rows for page in self.pages)


def parse_column_metadata(data: bytes, file_size: int) -> ColumnMetadata:
    """Parse the metadata message of one column of a file of `file_size` bytes."""
    try:
        message = file_v2_pb2.ColumnMetadata.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The metadata of the column cannot be parsed") from error
    pages = tuple(
        PageMetadata(
            page.length,
            _buffer_ranges(page.buffer_offsets, page.buffer_sizes, file_size),
            _encoding(page.encoding),
            page.priority,
        )
        for page in message.pages
    )
    buffers = _buffer_ranges(message.buffer_offsets, message.buffer_sizes, file_size)
    return ColumnMetadata(_encoding(message.encoding), pages, buffers)


def _buffer_ranges(offsets: Any, sizes: Any, file_size: int) -> tuple[tuple[int, int], ...]:
    if len(offsets) != len(sizes):
        raise CorruptFileError("A page lists different numbers of buffer offsets and buffer sizes")
    ranges = tuple(zip(offsets, sizes, strict=True))
    for offset, size in ranges:
        if offset + size > file_size:
            raise CorruptFileError("A page buffer is outside the file")
    return ranges


def _encoding(message: Any) -> EncodedMessage:
    if message.WhichOneof("location") != "direct":
        raise UnsupportedFeatureError("An indirectly stored encoding is not supported")
    return _described(message.direct.encoding)


@lru_cache(_KEPT_ENCODINGS)
def _described(data: bytes) -> EncodedMessage:
    try:
        described = any_pb2.Any.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The description of an encoding cannot be parsed") from error
    if "/" not in described.type_url:
        raise CorruptFileError(f"An encoding has the malformed type name '{described.type_url}'")
    return EncodedMessage(described.type_url.rsplit("/", 1)[1], described.value)
