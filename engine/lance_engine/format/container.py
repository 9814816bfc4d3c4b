"""The container of a 2.x data file: footer, tables of offsets, column metadata (format 2.0, container).

Bytes to frozen dataclasses; nothing here opens a file.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from google.protobuf import any_pb2

from lance_engine import kernels
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.format.pb import file_v2_pb2

MAGIC = b"LANC"
FOOTER_SIZE = 40
# Page buffers and global buffers start at multiples of this; the gaps are filled with PADDING.
ALIGNMENT = 64
PADDING = b"\x48"

_FOOTER = struct.Struct("<QQQIIHH4s")

COLUMN_ENCODING = "lance.encodings.ColumnEncoding"


class Footer(NamedTuple):
    """The last 40 bytes of a file; positions are absolute."""

    column_table_position: int
    global_table_position: int
    num_global_buffers: int
    num_columns: int
    version: str


def parse_footer(data: bytes, file_size: int) -> Footer:
    """Parse a footer from the last bytes of a file of `file_size` bytes.

    CorruptFileError for a file that is not a Lance file or whose tables are not inside it,
    UnsupportedFeatureError for a version that is not known.
    """
    try:
        columns, buffers, num_buffers, num_columns, version = kernels.parse_footer(data, file_size)
    except kernels.CorruptDataError as error:
        raise CorruptFileError(
            error.args[0], remedy="Restore the file from a backup, or use a version that does not need it"
        ) from None
    except kernels.UnsupportedError as error:
        what = error.args[0]
        raise UnsupportedFeatureError(
            what[:1].upper() + what[1:],
            remedy="Rewrite the dataset with version 2.1, or use a release that knows this version",
        ) from None
    return Footer(columns, buffers, num_buffers, num_columns, version)


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
    """The version number in footers of files of a version; for 2.0 it is 0.3."""
    return (0, 3) if version == (2, 0) else version


def direct_encoding(name: str, value: bytes) -> file_v2_pb2.Encoding:
    """An encoding stored in place: the name of a message type and its bytes."""
    message = any_pb2.Any(type_url=f"/{name}", value=value)
    return file_v2_pb2.Encoding(
        direct=file_v2_pb2.DirectEncoding(encoding=message.SerializeToString(deterministic=True))
    )


class EncodedMessage(NamedTuple):
    """A protobuf `Any`: the name of a message type, without what is before the slash, and its bytes."""

    name: str
    value: bytes


class PageMetadata(NamedTuple):
    """One page: its rows, the (offset, length) of its buffers, and its encoding."""

    rows: int
    buffers: tuple[tuple[int, int], ...]
    encoding: EncodedMessage
    priority: int


class ColumnMetadata(NamedTuple):
    """One column: its pages in row order and the buffers that belong to the column as a whole."""

    encoding: EncodedMessage
    pages: tuple[PageMetadata, ...]
    buffers: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        return sum(page.rows for page in self.pages)


def parse_column_metadata(data: bytes, file_size: int) -> ColumnMetadata:
    """Parse the metadata message of one column of a file of `file_size` bytes; errors are the kernels'."""
    name, value, pages, buffers = kernels.parse_column(data, file_size)
    return ColumnMetadata(
        EncodedMessage(name, value),
        tuple(
            PageMetadata(rows, tuple(places), EncodedMessage(encoding, message), priority)
            for rows, priority, encoding, message, places in pages
        ),
        tuple(buffers),
    )
