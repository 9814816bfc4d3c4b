"""Writes the container of a data file: aligned page buffers, schema, column metadata, tables and footer."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from lance_engine.encodings.page import BlobPage, Buffer, EncodedPage
from lance_engine.encodings.v2_0.column import struct_header
from lance_engine.file.columns import columns_of, items_per_row, stored_schema
from lance_engine.format.container import (
    ALIGNMENT,
    COLUMN_ENCODING,
    PADDING,
    direct_encoding,
    footer_version,
    serialize_footer,
)
from lance_engine.format.pb import encodings_pb2, file_pb2, file_v2_pb2
from lance_engine.format.schema import bytes_metadata, schema_to_messages
from lance_engine.io.store import Sink
from lance_engine.schema_tree import Field, Schema

_GAP = PADDING * ALIGNMENT
_RANGE = struct.Struct("<QQ")


class FileWriter:
    """One data file of version 2.0, 2.1 or 2.2, written front to back into a sink.

    Pages arrive per column in row order, and columns in any order; `finish` writes their metadata. The sink
    stays open: the caller decides whether to close it, and so publish the file.
    """

    def __init__(self, sink: Sink, schema: Schema, version: tuple[int, int] = (2, 1)) -> None:
        self._sink = sink
        self._schema = schema
        self._version = version
        self._position = 0
        self._fields = fields = columns_of(schema, version)
        self._columns = [
            file_v2_pb2.ColumnMetadata(encoding=_stored_column_encoding(self._holds_blobs(field)))
            for field in fields
        ]
        self._rows = [0] * len(fields)
        # In version 2.0 the columns below a list count items.
        tops = {top.id for top in schema.fields}
        self._counts_rows = [version >= (2, 1) or field.id in tops for field in fields]
        per_row = items_per_row(schema)
        self._items_per_row = [per_row.get(field.id, 1) for field in fields]
        self._headers = [version < (2, 1) and _is_plain_struct(field) for field in fields]
        for column, is_header in enumerate(self._headers):
            if is_header:
                self._write_page(column, EncodedPage(0, struct_header(), ()))

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._position

    def write_page(self, column: int, page: EncodedPage | BlobPage) -> None:
        """Append a page to a column, numbered as in `columns_of`; payloads of blobs precede their page.

        The pages of a struct header, which only contains its length, are merged into one.
        """
        if isinstance(page, BlobPage):
            page = page.finish([self._write_buffer(payload)[0] for payload in page.payloads])
        if self._headers[column]:
            self._columns[column].pages[0].length += page.rows
            self._rows[column] += page.rows
        else:
            self._write_page(column, page)

    def _write_page(self, column: int, page: EncodedPage) -> None:
        entry = self._columns[column].pages.add(length=page.rows)
        if self._version >= (2, 1):
            entry.priority = self._rows[column] // self._items_per_row[column]
        name = page.layout.DESCRIPTOR.full_name
        entry.encoding.CopyFrom(direct_encoding(name, page.layout.SerializeToString()))
        for buffer in page.buffers:
            position, size = self._write_buffer(buffer)
            entry.buffer_offsets.append(position)
            entry.buffer_sizes.append(size)
        self._rows[column] += page.rows

    def write_column_buffer(self, column: int, buffer: Buffer) -> None:
        """Append a buffer that belongs to a whole column."""
        position, size = self._write_buffer(buffer)
        self._columns[column].buffer_offsets.append(position)
        self._columns[column].buffer_sizes.append(size)

    def write_zone_map(self, column: int, buffer: Buffer, rows_per_zone: int) -> None:
        """Append a zone map, and record it in the encoding of the column (format 2.0, ``ZoneIndex``)."""
        place = encodings_pb2.Buffer(
            buffer_index=len(self._columns[column].buffer_offsets), buffer_type=encodings_pb2.Buffer.COLUMN
        )
        self.write_column_buffer(column, buffer)
        inner = _column_encoding(self._holds_blobs(self._fields[column]))
        wrapped = encodings_pb2.ZoneIndex(rows_per_zone=rows_per_zone, zone_map_buffer=place, inner=inner)
        encoding = encodings_pb2.ColumnEncoding(zone_index=wrapped)
        self._columns[column].encoding.CopyFrom(_stored(encoding))

    def finish(
        self, rows: int, metadata: Mapping[str, str] | None = None, buffers: Iterable[Buffer] = ()
    ) -> int:
        """Complete the file after the last page; returns its size in bytes.

        `metadata` are entries of the file's schema besides those of the dataset's, `buffers` its global
        buffers from number 1 on.
        """
        counted = zip(self._rows, self._items_per_row, self._counts_rows, strict=True)
        if any(written != rows * per_row for written, per_row, counts in counted if counts):
            raise ValueError(f"the columns have {sorted(set(self._rows))} rows, but the file has {rows} rows")
        schema = file_pb2.Schema(
            fields=schema_to_messages(stored_schema(self._schema)),
            metadata=bytes_metadata({**self._schema.metadata, **(metadata or {})}),
        )
        descriptor = file_pb2.FileDescriptor(schema=schema, length=rows)
        extra = [self._write_buffer(buffer) for buffer in buffers]
        global_buffers = [self._write_raw(descriptor.SerializeToString()), *extra]
        metadata_start = self._position
        columns = [self._write_raw(column.SerializeToString()) for column in self._columns]
        column_table = self._write_table(columns)
        global_table = self._write_table(global_buffers)
        counts = (len(global_buffers), len(columns))
        self._write_raw(
            serialize_footer(
                metadata_start, column_table, global_table, *counts, footer_version(self._version)
            )
        )
        return self._position

    def _holds_blobs(self, field: Field) -> bool:
        """Whether the encoding of the column has to record it."""
        return field.is_blob and self._version < (2, 1)

    def _write_buffer(self, buffer: Buffer) -> tuple[int, int]:
        data = memoryview(buffer)
        position, size = self._write_raw(data.cast("B") if data.nbytes else b"")
        gap = -size % ALIGNMENT
        if gap:
            self._write_raw(_GAP[:gap])
        return position, size

    def _write_raw(self, data: bytes | memoryview) -> tuple[int, int]:
        position, size = self._position, len(data)
        self._sink.write(data)
        self._position += size
        return position, size

    def _write_table(self, ranges: Sequence[tuple[int, int]]) -> int:
        return self._write_raw(b"".join(_RANGE.pack(*item) for item in ranges))[0]


def _column_encoding(blobs: bool) -> encodings_pb2.ColumnEncoding:
    encoding = encodings_pb2.ColumnEncoding(values=encodings_pb2.Empty())
    return encodings_pb2.ColumnEncoding(blob=encodings_pb2.Blob(inner=encoding)) if blobs else encoding


@cache
def _stored_column_encoding(blobs: bool) -> file_v2_pb2.Encoding:
    return _stored(_column_encoding(blobs))


def _stored(encoding: encodings_pb2.ColumnEncoding) -> file_v2_pb2.Encoding:
    return direct_encoding(COLUMN_ENCODING, encoding.SerializeToString())


def _is_plain_struct(field: Field) -> bool:
    return field.logical_type == "struct" and not field.is_packed and not field.is_blob
