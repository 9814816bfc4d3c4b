"""Streams record batches into one data file: buffers columns, cuts pages, encodes them on a few threads."""

from __future__ import annotations

import dataclasses
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from lance_engine.encodings.v2_1.encode import EncodedPage
from lance_engine.file.writer import FileWriter
from lance_engine.io.store import Sink
from lance_engine.types import Field, Schema
from lance_engine.write.encode import encode_column
from lance_engine.write.options import WriteOptions

# Pages that may wait to be encoded or written; bounds memory together with the page size.
_PENDING_PAGES = 6
# Pages of many rows are cut at multiples of this, so that bit-packed blocks are full.
_ROW_UNIT = 1024
_MIN_PAGE_BYTES = 1 << 16


@dataclasses.dataclass(slots=True)
class _Column:
    """Rows of one top-level column that are not yet in a page."""

    field: Field
    first_leaf: int
    leaves: int
    pieces: list[pa.Array] = dataclasses.field(default_factory=list)
    bytes: int = 0


class DataFileWriter:
    """Writes one data file. Batches must have exactly the schema's types.

    Pages hold about `WriteOptions.page_bytes` per leaf; columns are cut independently of each other. After
    any error the file is worthless: discard the sink.
    """

    def __init__(
        self, sink: Sink, schema: Schema, options: WriteOptions, executor: ThreadPoolExecutor
    ) -> None:
        self._file = FileWriter(sink, schema, options.version)
        self._version = options.version
        self._executor = executor
        self._pending: deque[tuple[int, Future[list[list[EncodedPage]]]]] = deque()
        self._columns: list[_Column] = []
        first_leaf = 0
        for top in schema.fields:
            leaves = sum(1 for _ in top.leaves())
            self._columns.append(_Column(top, first_leaf, leaves))
            first_leaf += leaves
        share = options.buffer_bytes // max(first_leaf, 1)
        self._page_bytes = max(_MIN_PAGE_BYTES, min(options.page_bytes, share))
        self.rows = 0

    @property
    def size(self) -> int:
        """Bytes in the file so far, plus the Arrow size of what is buffered."""
        return self._file.size + sum(column.bytes for column in self._columns)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append the rows of a batch."""
        if batch.num_rows == 0:
            return
        self.rows += batch.num_rows
        for column, array in zip(self._columns, batch.columns, strict=True):
            column.pieces.append(array)
            column.bytes += array.nbytes
            if column.bytes >= self._page_bytes * column.leaves:
                self._cut(column)

    def finish(self) -> int:
        """Write the remaining pages and the end of the file; returns the file's size in bytes."""
        for column in self._columns:
            if column.pieces:
                self._cut(column)
        self._drain(0)
        return self._file.finish(self.rows)

    def _cut(self, column: _Column) -> None:
        """Turn everything buffered into pages of about equal length."""
        rows = sum(len(piece) for piece in column.pieces)
        pages = max(1, column.bytes // (self._page_bytes * column.leaves))
        length = -(-rows // pages)
        if length > 8 * _ROW_UNIT:
            length += -length % _ROW_UNIT
        if length >= rows:
            self._submit(column, column.pieces)
        else:
            for piece in column.pieces if len(column.pieces) == 1 else [_joined(column.pieces)]:
                for start in range(0, rows, length):
                    self._submit(column, [piece.slice(start, length)])
        column.pieces, column.bytes = [], 0

    def _submit(self, column: _Column, pieces: list[pa.Array]) -> None:
        task = self._executor.submit(_encode, pieces, column.field, self._version)
        self._pending.append((column.first_leaf, task))
        self._drain(_PENDING_PAGES)

    def _drain(self, limit: int) -> None:
        """Write finished pages in the order they were cut until at most `limit` are pending."""
        while len(self._pending) > limit:
            first_leaf, task = self._pending.popleft()
            for leaf, pages in enumerate(task.result()):
                for page in pages:
                    self._file.write_page(first_leaf + leaf, page)


def _encode(pieces: list[pa.Array], top: Field, version: tuple[int, int]) -> list[list[EncodedPage]]:
    return encode_column(_joined(pieces), top, version)


def _joined(pieces: list[pa.Array]) -> pa.Array:
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
