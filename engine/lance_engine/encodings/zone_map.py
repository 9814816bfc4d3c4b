"""Zone maps as bytes: a small data file without schema and alignment (format 2.0, zone_index).

It has three columns with one page each and one row per zone: ``min`` and ``max`` in the type of the described
column, null if a zone has no bound, and ``null_count`` (uint32).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lance_engine.format.container import COLUMN_ENCODING, direct_encoding, serialize_footer
from lance_engine.format.pb import encodings_pb2 as pb
from lance_engine.format.pb import file_v2_pb2

_ARRAY_ENCODING = "lance.encodings.ArrayEncoding"
_VERSION = (0, 3)
_RANGE = struct.Struct("<QQ")


@dataclass(frozen=True, slots=True)
class Bounds:
    """One bound per zone: whether it is `known`, and its end in `data`.

    Fixed-width values are contiguous, including unknown ones; booleans take a byte each.
    """

    known: npt.NDArray[np.bool_]
    ends: npt.NDArray[np.uint64]
    data: bytes


class _Page(NamedTuple):
    encoding: file_v2_pb2.Encoding
    buffers: tuple[bytes, ...]


def serialize_zone_map(
    bits: int, minimum: Bounds, maximum: Bounds, null_counts: npt.NDArray[np.uint32]
) -> bytes:
    """The zone map of a column; `bits` is the width of its values, 0 for strings and binary."""
    pages = [_bounds_page(bits, minimum), _bounds_page(bits, maximum)]
    counts = null_counts.astype("<u4").tobytes()
    pages.append(_Page(_plain(32), (counts,)))
    content = bytearray()
    columns = []
    for page in pages:
        offsets = []
        for buffer in page.buffers:
            offsets.append(len(content))
            content += buffer
        entry = file_v2_pb2.ColumnMetadata.Page(
            length=len(null_counts),
            encoding=page.encoding,
            buffer_offsets=offsets,
            buffer_sizes=map(len, page.buffers),
        )
        column = file_v2_pb2.ColumnMetadata(encoding=_column_encoding(), pages=[entry])
        columns.append(column.SerializeToString())
    first_column = len(content)
    table = bytearray()
    for message in columns:
        table += _RANGE.pack(len(content), len(message))
        content += message
    column_table = len(content)
    content += table
    content += serialize_footer(first_column, column_table, len(content), 0, len(columns), _VERSION)
    return bytes(content)


def _bounds_page(bits: int, bounds: Bounds) -> _Page:
    if not bounds.known.any():
        return _Page(_all_null(), ())
    if bits == 0:
        return _binary_page(bounds)
    data = bounds.data
    if bits == 1:
        data = np.packbits(np.frombuffer(data, np.uint8), bitorder="little").tobytes()
    if bounds.known.all():
        return _Page(_plain(bits), (data,))
    validity = np.packbits(bounds.known, bitorder="little").tobytes()
    return _Page(_with_nulls(bits), (validity, data))


def _binary_page(bounds: Bounds) -> _Page:
    """Ends and bytes; the end of a null is marked by a number larger than any end (format 2.0, binary)."""
    adjustment = len(bounds.data) + 1
    ends = bounds.ends + np.where(bounds.known, np.uint64(0), np.uint64(adjustment))
    encoding = pb.Binary(indices=_without_nulls(_flat(64, 0)), bytes=_flat(8, 1), null_adjustment=adjustment)
    return _Page(_stored(pb.ArrayEncoding(binary=encoding)), (ends.astype("<u8").tobytes(), bounds.data))


# Every column of every file needs the same few objects. They are immutable.


@cache
def _all_null() -> file_v2_pb2.Encoding:
    return _stored(pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull())))


@cache
def _plain(bits: int) -> file_v2_pb2.Encoding:
    return _stored(_without_nulls(_flat(bits, 0)))


@cache
def _with_nulls(bits: int) -> file_v2_pb2.Encoding:
    some = pb.Nullable.SomeNull(validity=_flat(1, 0), values=_flat(bits, 1))
    return _stored(pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some)))


def _stored(encoding: pb.ArrayEncoding) -> file_v2_pb2.Encoding:
    return direct_encoding(_ARRAY_ENCODING, encoding.SerializeToString())


def _flat(bits: int, buffer: int) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer)))


def _without_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


@cache
def _column_encoding() -> file_v2_pb2.Encoding:
    values = pb.ColumnEncoding(values=pb.Empty())
    return direct_encoding(COLUMN_ENCODING, values.SerializeToString())
