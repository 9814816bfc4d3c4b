"""The container of a data file of version 0.1: footer, metadata and page table (format 0.1, file layout).

Bytes to frozen dataclasses; nothing here opens a file.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_engine.errors import CorruptFileError
from lance_engine.format.pb import file_pb2, table_pb2

FOOTER_SIZE: Final = 16
LENGTH_SIZE: Final = 4
MAGIC: Final = b"LANC"
VERSIONS: Final = frozenset({(0, 0), (0, 1), (0, 2)})
# One (position, length) pair for each field and batch.
_CELL_SIZE: Final = 16

_FOOTER: Final = struct.Struct("<QHH4s")
_LENGTH: Final = struct.Struct("<I")


class Page(NamedTuple):
    """The values of one field in one batch: their position and number."""

    position: int
    length: int


class StoredDictionary(NamedTuple):
    """The values of a dictionary column: their position and number."""

    position: int
    length: int


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a file; positions are absolute.

    `batch_starts` are the first rows of the batches, followed by the number of rows.
    """

    batch_starts: tuple[int, ...]
    page_table_position: int
    manifest_position: int

    @property
    def batches(self) -> int:
        return len(self.batch_starts) - 1

    @property
    def rows(self) -> int:
        return self.batch_starts[-1]


def parse_footer(data: bytes, file_size: int) -> int:
    """The position of the metadata, from the last bytes of a file of `file_size` bytes."""
    if len(data) < FOOTER_SIZE or data[-len(MAGIC) :] != MAGIC:
        raise CorruptFileError(
            "This is not a Lance data file, or it is truncated: it does not end in 'LANC'",
            remedy="Restore the file from a backup, or use a version that does not need it",
        )
    position, major, minor, _ = _FOOTER.unpack(data[-FOOTER_SIZE:])
    if (major, minor) not in VERSIONS:
        raise CorruptFileError(
            f"The manifest records file version 0.1, but the file is version {major}.{minor}"
        )
    if position > file_size - FOOTER_SIZE - LENGTH_SIZE:
        raise CorruptFileError("The footer points outside the file", remedy="Restore the file from a backup")
    return int(position)


def message_length(prefix: bytes) -> int:
    """The size of a message, from the four bytes before it."""
    return int(_LENGTH.unpack(prefix)[0])


def parse_metadata(data: bytes) -> Metadata:
    """The metadata message; CorruptFileError if its batches are not contiguous."""
    try:
        message = file_pb2.Metadata.FromString(data)
    except DecodeError as error:
        raise CorruptFileError("The metadata of the file cannot be parsed") from error
    starts = tuple(message.batch_offsets) or (0,)
    if starts[0] != 0 or any(end < begin for begin, end in pairwise(starts)):
        raise CorruptFileError("The batches of the file are not contiguous")
    return Metadata(starts, message.page_table_position, message.manifest_position)


def parse_schema(manifest: bytes) -> Mapping[int, StoredDictionary | None]:
    """Field ids and dictionaries, from the manifest that is part of the file."""
    try:
        message = table_pb2.Manifest.FromString(manifest)
    except DecodeError as error:
        raise CorruptFileError("The schema of the file cannot be parsed") from error
    if not message.fields:
        raise CorruptFileError("The file has no schema")
    return {
        field.id: StoredDictionary(field.dictionary.offset, field.dictionary.length)
        if field.HasField("dictionary")
        else None
        for field in sorted(message.fields, key=lambda field: field.id)
    }


class PageTable:
    """The pages of all fields: a dense matrix over field ids and batches."""

    def __init__(self, first_id: int, cells: npt.NDArray[np.int64]) -> None:
        self._first_id = first_id
        self._cells = cells

    @staticmethod
    def size(field_ids: Sequence[int], batches: int, limit: int) -> int:
        """Bytes of the table for the field ids of a file; CorruptFileError if it exceeds `limit`."""
        size = (max(field_ids) - field_ids[0] + 1) * batches * _CELL_SIZE
        if not 0 <= size <= limit:
            raise CorruptFileError("The page table extends past the end of the file")
        return size

    @classmethod
    def parse(cls, data: bytes, field_ids: Sequence[int], batches: int) -> PageTable:
        rows = max(field_ids) - field_ids[0] + 1
        return cls(field_ids[0], np.frombuffer(data, "<i8").reshape(rows, batches, 2))

    def pages(self, field_id: int) -> list[Page]:
        """One page for each batch; CorruptFileError for numbers that no page can have."""
        row = field_id - self._first_id
        if not 0 <= row < len(self._cells):
            raise CorruptFileError(f"The file has no pages of field {field_id}")
        pages = [Page(*cell) for cell in self._cells[row].tolist()]
        if any(position < 0 or not 0 <= length < 2**32 for position, length in pages):
            raise CorruptFileError(f"The page table is invalid for field {field_id}")
        return pages
