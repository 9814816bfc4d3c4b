"""A packed row format for exchanging batches with the planner in the JVM.

PackedColumn.java reads the output of `pack`, and PackedRows.java writes the input of `unpack`.

A batch is one binary value. It begins with the number of rows, followed by three offsets for every column,
relative to the start of the value: of the validity bitmap (0 if there are no nulls), of the values, and of
the bytes of strings and binaries; each is an 8-byte number. The buffers follow, aligned to 8 bytes, and all
numbers are little-endian as in Arrow. Values are encoded as in Arrow, but booleans take one byte, and
decimals of up to 18 digits 8 bytes. Strings and binaries have one 4-byte offset more than rows, relative to
the bytes of the column.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import CorruptFileError

# Decimals with more digits do not fit into 8 bytes.
_LONG_DIGITS: Final = 18
# One value of Spark holds less than 2 GiB.
_MAX_BYTES: Final = 1 << 28
_LENGTH_BYTES: Final = 8
# Smaller batches wait for the next ones, at most this many seconds.
_FEW_ROWS: Final = 8192
_LONGEST_WAIT: Final = 0.05


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows, with small batches merged: passing on a batch takes as long as some thousand rows."""
    small: list[pa.RecordBatch] = []
    rows, since = 0, 0.0
    for batch in batches:
        if not small:
            since = time.monotonic()
        small.append(batch)
        rows += batch.num_rows
        if rows >= _FEW_ROWS or time.monotonic() - since > _LONGEST_WAIT:
            yield _one(small)
            small, rows = [], 0
    if small:
        yield _one(small)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def pack(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of `batch` as batches of `schema`, which has one binary column."""
    if not batch.num_rows:
        return
    if batch.nbytes > _MAX_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from pack(batch.slice(0, half), schema)
        yield from pack(batch.slice(half), schema)
        return
    packed = _Pack(batch.num_columns)
    places = [packed.column(column) for column in batch.columns]
    value = packed.value(batch.num_rows, places)
    ends = pa.py_buffer(struct.pack("<ii", 0, value.size))
    yield pa.RecordBatch.from_arrays(
        [pa.Array.from_buffers(pa.binary(), 1, [None, ends, value])], schema=schema
    )


def unpack(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a stream of packed values, each preceded by its size; the stream arrives in pieces."""
    rest = pa.py_buffer(b"")
    for batch in batches:
        if not batch.num_rows:
            continue
        arrived = _joined(batch.column(0))
        if rest.size:
            arrived = pa.py_buffer(b"".join([rest, arrived]))
        place = 0
        while arrived.size - place >= _LENGTH_BYTES:
            size = int.from_bytes(arrived.slice(place, _LENGTH_BYTES), "little")
            if arrived.size - place - _LENGTH_BYTES < size:
                break
            yield _unpacked(arrived.slice(place + _LENGTH_BYTES, size), schema)
            place += _LENGTH_BYTES + size
        rest = arrived.slice(place)
    if rest.size:
        raise CorruptFileError(f"Spark's task ended with {rest.size} bytes of incomplete rows")


def _joined(values: pa.Array) -> pa.Buffer:
    """The bytes of all values, concatenated."""
    _, ends, data = values.buffers()
    kind = np.int64 if at.is_large_binary(values.type) else np.int32
    offsets = np.frombuffer(ends, kind)[values.offset : values.offset + len(values) + 1]
    return data.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))


def _unpacked(value: pa.Buffer, schema: pa.Schema) -> pa.RecordBatch:
    rows, *places = np.frombuffer(value, np.int64, 1 + 3 * len(schema)).tolist()
    columns = [_column(value, rows, field.type, places[3 * i : 3 * i + 3]) for i, field in enumerate(schema)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(value: pa.Buffer, rows: int, kind: pa.DataType, places: list[int]) -> pa.Array:
    validity, values, data = places
    valid = value.slice(validity, (rows + 7) // 8) if validity else None
    if at.is_string(kind) or at.is_binary(kind):
        ends = value.slice(values, 4 * (rows + 1))
        return pa.Array.from_buffers(kind, rows, [valid, ends, value.slice(data)])
    if at.is_boolean(kind):
        return pa.Array.from_buffers(pa.uint8(), rows, [valid, value.slice(values, rows)]).cast(kind)
    if at.is_decimal(kind) and kind.precision <= _LONG_DIGITS:
        wide = np.empty((rows, 2), np.int64)
        wide[:, 0] = np.frombuffer(value, np.int64, rows, values)
        wide[:, 1] = wide[:, 0] >> 63
        return pa.Array.from_buffers(kind, rows, [valid, pa.py_buffer(wide)])
    return pa.Array.from_buffers(kind, rows, [valid, value.slice(values, rows * kind.bit_width // 8)])


class _Pack:
    def __init__(self, columns: int) -> None:
        self._pieces: list[Any] = []
        self._place = 8 + 24 * columns

    def column(self, column: pa.Array) -> tuple[int, int, int]:
        """Append the buffers of a column and return their offsets."""
        validity = self._add(_bits(column.is_valid())) if column.null_count else 0
        if at.is_string(column.type) or at.is_binary(column.type):
            _, ends, data = column.buffers()
            offsets = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1]
            first, last = int(offsets[0]), int(offsets[-1])
            place = self._add(offsets)
            return validity, place, self._add(data.slice(first, last - first) if data else b"") - first
        return validity, self._add(_values(column)), 0

    def _add(self, buffer: Any) -> int:
        place = self._place
        view = memoryview(buffer).cast("B")
        padding = -len(view) % 8
        self._pieces.append(view)
        if padding:
            self._pieces.append(bytes(padding))
        self._place += len(view) + padding
        return place

    def value(self, rows: int, places: list[tuple[int, int, int]]) -> pa.Buffer:
        head = struct.pack(f"<{1 + 3 * len(places)}q", rows, *(place for three in places for place in three))
        return pa.py_buffer(b"".join([head, *self._pieces]))


def _bits(flags: pa.Array) -> Any:
    """A bitmap that starts at the first bit."""
    return flags.buffers()[1]


def _values(column: pa.Array) -> Any:
    if at.is_boolean(column.type):
        return column.cast(pa.uint8()).buffers()[1]
    width = column.type.bit_width // 8
    buffer = column.buffers()[1].slice(column.offset * width, len(column) * width)
    if at.is_decimal(column.type) and column.type.precision <= _LONG_DIGITS:
        return np.ascontiguousarray(np.frombuffer(buffer, np.int64)[::2])
    return buffer
