"""Streams record batches to a data file: buffers columns, cuts pages, and encodes them on a few threads."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from lance_engine.encodings.jsonb import stored_json
from lance_engine.encodings.leaves import leaves_of
from lance_engine.encodings.page import Buffer, Page
from lance_engine.encodings.profile import PROFILES
from lance_engine.encodings.v2_0 import column as v2_0
from lance_engine.encodings.v2_1 import column as v2_1
from lance_engine.encodings.zone_statistics import joined_statistics, zone_map, zone_statistics
from lance_engine.file.columns import columns_of
from lance_engine.file.writer import FileWriter
from lance_engine.format.zone_map_place import ZoneMapPlace, serialize_zone_map_place
from lance_engine.io.store import Sink
from lance_engine.kernels import ZoneStatistics
from lance_engine.schema_tree import Field, Schema
from lance_engine.tasks import Pool, Task
from lance_engine.write.options import WriteOptions

# Maximum number of pages waiting to be encoded or written; limits memory together with the page size.
_PENDING_PAGES = 6
# Pages of many rows are cut at multiples of this, so that bit-packed blocks are full.
_ROW_UNIT = 1024
_MIN_PAGE_BYTES = 1 << 16
# Encoding less than this is faster than using another thread.
_INLINE_BYTES = 1 << 18


@dataclasses.dataclass(slots=True)
class _Column:
    """Rows of one top-level column that are not yet in a page."""

    field: Field
    first_leaf: int
    leaves: int
    first_column: int
    pieces: list[pa.Array] = dataclasses.field(default_factory=list)
    bytes: int = 0
    first_row: int = 0
    """Number of the first row of `pieces` in the file."""


class _Encoded(NamedTuple):
    """Some rows: pages for each column, statistics for each leaf unless it gets no zone map."""

    pages: list[list[Page]]
    zones: list[ZoneStatistics | None]


# A column that is smaller than this part of its batch is copied to wait on its own.
_COPIED_SHARE = 4


class DataFileWriter:
    """Writes one data file. Batches must have exactly the schema's types.

    Pages contain about `WriteOptions.page_bytes` per leaf; columns are divided independently. After any error
    the file is unusable: discard the sink.
    """

    def __init__(self, sink: Sink, schema: Schema, options: WriteOptions, pool: Pool) -> None:
        self._file = FileWriter(sink, schema, options.version)
        self._options = options
        self._pool = pool
        self._pending: deque[tuple[_Column, Task[_Encoded]]] = deque()
        self._leaves = list(schema.leaves())
        self._zones: list[list[ZoneStatistics]] = [[] for _ in self._leaves]
        self._columns: list[_Column] = []
        owners = {field.id: column for column, field in enumerate(columns_of(schema, options.version))}
        self._leaf_columns = [owners[leaf.id] for leaf in self._leaves]
        first_leaf = 0
        for top in schema.fields:
            leaves = sum(1 for _ in top.leaves())
            # A column of version 2.0 may belong to the field itself, later ones only to leaves.
            first_column = owners.get(top.id, self._leaf_columns[first_leaf])
            self._columns.append(_Column(top, first_leaf, leaves, first_column))
            first_leaf += leaves
        share = options.buffer_bytes // max(first_leaf, 1)
        self._page_bytes = max(_MIN_PAGE_BYTES, min(options.page_bytes, share))
        self.rows = 0

    @property
    def size(self) -> int:
        """Bytes in the file so far, plus the Arrow size of the buffered data."""
        return self._file.size + sum(column.bytes for column in self._columns)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        if batch.num_rows == 0:
            return
        self.rows += batch.num_rows
        sizes = [array.nbytes for array in batch.columns]
        # Columns imported through the C interface have a common owner: one that waits keeps all in memory.
        narrow = sum(sizes) // _COPIED_SHARE if sum(sizes) > _INLINE_BYTES else 0
        for column, array, size in zip(self._columns, batch.columns, sizes, strict=True):
            column.bytes += size
            full = column.bytes >= self._page_bytes * column.leaves
            copied = not full and size < narrow
            column.pieces.append(_joined([array, array.slice(0, 0)]) if copied else array)
            if full:
                self._cut(column)

    def finish(self, metadata: Mapping[str, str] | None = None, buffers: Iterable[Buffer] = ()) -> int:
        """Write the remaining pages and the end of the file; returns the file size in bytes.

        `metadata` become entries of the file's schema, `buffers` its global buffers from number 1 on.
        """
        left = [column for column in self._columns if column.pieces]
        # While a thread encodes the large columns, this one does the small ones; a single one needs no other.
        alone = not self._pending and len(left) == 1
        for column in left:
            self._cut(column, inline=alone or column.bytes <= _INLINE_BYTES)
        self._drain(0)
        entries = dict(metadata or {})
        if self._options.zone_maps:
            self._write_zone_maps()
            entries |= serialize_zone_map_place(ZoneMapPlace(self._options.zone_rows, column_buffer=0))
        return self._file.finish(self.rows, entries, buffers)

    def _cut(self, column: _Column, *, inline: bool = False) -> None:
        """Turn everything buffered into pages of about equal length, on this thread if `inline`."""
        rows = sum(len(piece) for piece in column.pieces)
        pages = max(1, column.bytes // (self._page_bytes * column.leaves))
        length = -(-rows // pages)
        if length > 8 * _ROW_UNIT:
            length += -length % _ROW_UNIT
        if length >= rows:
            self._submit(column, column.pieces, inline)
        else:
            for piece in column.pieces if len(column.pieces) == 1 else [_joined(column.pieces)]:
                for start in range(0, rows, length):
                    self._submit(column, [piece.slice(start, length)], inline)
        column.pieces, column.bytes = [], 0

    def _submit(self, column: _Column, pieces: list[pa.Array], inline: bool) -> None:
        encode = partial(_encode, pieces, column.field, column.first_row, self._options)
        if inline:
            task = Task(encode)
            task.run()
        else:
            task = self._pool.submit(encode)
        column.first_row += sum(len(piece) for piece in pieces)
        self._pending.append((column, task))
        self._drain(_PENDING_PAGES)

    def _drain(self, limit: int) -> None:
        """Write completed pages in order until at most `limit` are pending."""
        while len(self._pending) > limit:
            column, task = self._pending.popleft()
            encoded = task.result()
            for number, pages in enumerate(encoded.pages, column.first_column):
                for page in pages:
                    self._file.write_page(number, page)
            for leaf, zones in enumerate(encoded.zones, column.first_leaf):
                if zones is not None:
                    self._zones[leaf].append(zones)

    def _write_zone_maps(self) -> None:
        for leaf, parts in enumerate(self._zones):
            if parts:
                content = zone_map(self._leaves[leaf], joined_statistics(parts))
                column = self._leaf_columns[leaf]
                if self._options.zone_index == "strict":
                    self._file.write_zone_map(column, content, self._options.zone_rows)
                else:
                    self._file.write_column_buffer(column, content)


def _encode(pieces: list[pa.Array], top: Field, first_row: int, options: WriteOptions) -> _Encoded:
    array = stored_json(_joined(pieces), top)
    leaves = leaves_of(array, top)
    if options.version >= (2, 1):
        pages = v2_1.encode_column(array, top, options.version, leaves, PROFILES[options.profile])
    else:
        pages = v2_0.encode_column(array, top)
    zones: list[ZoneStatistics | None] = [None] * len(leaves)
    if options.zone_maps:
        zones = [zone_statistics(leaf, options.zone_rows, first_row) for leaf in leaves]
    return _Encoded(pages, zones)


def _joined(pieces: list[pa.Array]) -> pa.Array:
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
