"""Data files made by hand, page by page: any legal choice of encodings, not only those a writer would
make.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import file_pb2, file_v2_pb2
from lance_engine.schema_tree import Schema
from reference import bitpacking
from reference.levels import LevelArrays, visible
from reference.sections import pad

Integers = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Page:
    """The contents of one page."""

    layout: pb.PageLayout
    buffers: list[bytes]
    length: int
    type_url: str = "/lance.encodings21.PageLayout"


@dataclass
class Encoded:
    """A compressive encoding with its buffers."""

    encoding: pb.CompressiveEncoding
    buffers: list[bytes] = field(default_factory=list)


# ---- compressive encodings ---------------------------------------------------------------------------------


def flat_encoding(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def flat(values: Integers) -> Encoded:
    if values.dtype == np.bool_:
        return Encoded(flat_encoding(1), [np.packbits(values, bitorder="little").tobytes()])
    return Encoded(flat_encoding(values.dtype.itemsize * 8), [values.tobytes()])


def inline_bitpacking(values: Integers, spare_bits: int = 0) -> Encoded:
    """At most 1024 values; `spare_bits` more than needed."""
    unsigned = values.view(f"u{values.dtype.itemsize}")
    bits = unsigned.dtype.itemsize * 8
    packed_bits = min(bits, int(np.bitwise_or.reduce(unsigned, initial=0)).bit_length() + spare_bits)
    data = packed_bits.to_bytes(bits // 8, "little") + bitpacking.pack_block(unsigned, packed_bits)
    message = pb.InlineBitpacking(uncompressed_bits_per_value=bits)
    return Encoded(pb.CompressiveEncoding(inline_bitpacking=message), [data])


def out_of_line_bitpacking(values: Integers, packed_bits: int, raw_tail: bool) -> Encoded:
    bits = values.dtype.itemsize * 8
    full = len(values) // 1024 * 1024
    data = b"".join(bitpacking.pack_block(values[at : at + 1024], packed_bits) for at in range(0, full, 1024))
    tail = values[full:]
    if len(tail):
        # A block of the size of the raw tail cannot be told from it: readers take it for raw.
        raw_tail = raw_tail or len(tail) * bits // 8 == bitpacking.block_bytes(packed_bits)
        data += tail.tobytes() if raw_tail else bitpacking.pack_block(tail, packed_bits)
    message = pb.OutOfLineBitpacking(uncompressed_bits_per_value=bits, values=flat_encoding(packed_bits))
    return Encoded(pb.CompressiveEncoding(out_of_line_bitpacking=message), [data])


def rle(values: Integers, longest: int = 255) -> Encoded:
    runs: list[list[int]] = []
    for index in range(len(values)):
        if runs and values[runs[-1][0]] == values[index] and runs[-1][1] < longest:
            runs[-1][1] += 1
        else:
            runs.append([index, 1])
    starts = [start for start, _ in runs]
    message = pb.Rle(values=flat_encoding(values.dtype.itemsize * 8), run_lengths=flat_encoding(8))
    lengths = bytes(length for _, length in runs)
    return Encoded(pb.CompressiveEncoding(rle=message), [values[starts].tobytes(), lengths])


def rle_block(values: Integers) -> Encoded:
    inner = rle(values)
    size = struct.pack("<Q", len(inner.buffers[0]))
    return Encoded(inner.encoding, [size + b"".join(inner.buffers)])


def byte_stream_split(values: Integers) -> Encoded:
    width = values.dtype.itemsize
    data = values.view(np.uint8).reshape(len(values), width).T.tobytes()
    message = pb.ByteStreamSplit(values=flat_encoding(width * 8))
    return Encoded(pb.CompressiveEncoding(byte_stream_split=message), [data])


def variable_encoding(offset_bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat_encoding(offset_bits)))


def variable(values: Sequence[bytes], offset_bits: int) -> Encoded:
    width = offset_bits // 8
    start = (len(values) + 1) * width
    offsets = np.cumsum([start, *map(len, values)]).astype(f"<u{width}")
    data = offsets.tobytes() + b"".join(values)
    return Encoded(variable_encoding(offset_bits), [data.ljust(pad(len(data), width), b"H")])


def variable_block(values: Sequence[bytes], offset_bits: int) -> Encoded:
    width = offset_bits // 8
    start = (len(values) + 3) * width
    offsets = np.cumsum([0, *map(len, values)])
    numbers = np.array([offset_bits, start, *offsets]).astype(f"<u{width}")
    return Encoded(variable_encoding(offset_bits), [numbers.tobytes() + b"".join(values)])


FSST_SYMBOLS = [b"ab", b"abc", b"the ", b"12345678", b"a", b"\xff"]


def fsst_table() -> bytes:
    head = bytes([len(FSST_SYMBOLS), 0, 0, 1]) + b"TSSF"
    head += b"".join(symbol.ljust(8, b"\0") for symbol in FSST_SYMBOLS) + bytes(map(len, FSST_SYMBOLS))
    return head.ljust(2312, b"\0")


def fsst_code(value: bytes) -> bytes:
    out = bytearray()
    position = 0
    while position < len(value):
        for code in sorted(range(len(FSST_SYMBOLS)), key=lambda code: -len(FSST_SYMBOLS[code])):
            if value.startswith(FSST_SYMBOLS[code], position):
                out.append(code)
                position += len(FSST_SYMBOLS[code])
                break
        else:
            out += bytes([255, value[position]])
            position += 1
    return bytes(out)


def fsst(values: Sequence[bytes], offset_bits: int) -> Encoded:
    inner = variable([fsst_code(value) for value in values], offset_bits)
    message = pb.Fsst(symbol_table=fsst_table(), values=inner.encoding)
    return Encoded(pb.CompressiveEncoding(fsst=message), inner.buffers)


def compress(data: bytes, scheme: str, level: int | None = None) -> bytes:
    if scheme == "lz4":
        return struct.pack("<I", len(data)) + bytes(pa.Codec("lz4_raw").compress(data, asbytes=True))
    codec = pa.Codec("zstd", compression_level=level)
    return struct.pack("<Q", len(data)) + bytes(codec.compress(data, asbytes=True))


def general(inner: Encoded, scheme: str, level: int | None = None) -> Encoded:
    scheme_number = pb.BufferCompression.Scheme.Value(scheme.upper())
    compression = pb.BufferCompression(scheme=scheme_number, level=level)
    message = pb.General(compression=compression, values=inner.encoding)
    buffers = [compress(inner.buffers[0], scheme, level), *inner.buffers[1:]]
    return Encoded(pb.CompressiveEncoding(general=message), buffers)


# ---- layouts -----------------------------------------------------------------------------------------------


@dataclass
class Chunk:
    """One mini-block chunk: `entries` level entries with `values` visible ones."""

    values: int
    entries: int
    repetition: Encoded | None
    definition: Encoded | None
    content: Encoded

    def pack(self, large: bool) -> bytes:
        wide = "<I" if large else "<H"
        levels = [each.buffers[0] for each in (self.repetition, self.definition) if each is not None]
        has_levels = bool(levels)
        data = struct.pack("<H", self.entries if has_levels else 0)
        data += b"".join(struct.pack("<H", len(each)) for each in levels)
        data += b"".join(struct.pack(wide, len(each)) for each in self.content.buffers)
        for each in [*levels, *self.content.buffers]:
            data = data.ljust(pad(len(data), 8), b"\xfe") + each
        return data.ljust(pad(len(data), 8), b"\xfe")


def cut_levels(arrays: LevelArrays, value_counts: Sequence[int]) -> list[slice]:
    """The entries of chunks with so many visible values; invisible ones go with the value that follows
    them.
    """
    ends = np.flatnonzero(visible(arrays)) + 1
    stops = [int(ends[index - 1]) if index else 0 for index in np.cumsum(value_counts)]
    stops[-1] = arrays.count
    return [slice(start, stop) for start, stop in zip([0, *stops], stops, strict=False)]


def mini_block(
    arrays: LevelArrays,
    rows: int,
    chunks: Sequence[Chunk],
    large: bool,
    index: bytes | None = None,
    dictionary: tuple[Encoded, int] | None = None,
) -> Page:
    """A mini-block page of finished chunks; `index` is the repetition index of a page of lists."""
    first = chunks[0]
    layout = pb.MiniBlockLayout(
        value_compression=first.content.encoding,
        layers=arrays.layers,
        num_buffers=len(first.content.buffers),
        repetition_index_depth=0 if index is None else 1,
        num_items=sum(chunk.values for chunk in chunks),
        has_large_chunk=large,
    )
    if first.repetition is not None:
        layout.rep_compression.CopyFrom(first.repetition.encoding)
    if first.definition is not None:
        layout.def_compression.CopyFrom(first.definition.encoding)
    words = []
    data = b""
    for number, chunk in enumerate(chunks):
        packed = chunk.pack(large)
        log2 = 0 if number == len(chunks) - 1 else chunk.values.bit_length() - 1
        words.append((len(packed) // 8 - 1) << 4 | log2)
        data += packed
    buffers = [np.array(words, "<u4" if large else "<u2").tobytes(), data]
    if dictionary is not None:
        layout.dictionary.CopyFrom(dictionary[0].encoding)
        layout.num_dictionary_items = dictionary[1]
        buffers += dictionary[0].buffers
    if index is not None:
        buffers.append(index)
    return Page(pb.PageLayout(mini_block_layout=layout), buffers, rows)


def full_zip(
    arrays: LevelArrays,
    rows: int,
    encoding: pb.CompressiveEncoding,
    values: Sequence[bytes],
    offset_bits: int = 0,
) -> Page:
    """A full-zip page over the bytes of the visible values; `offset_bits` 0 means fixed width."""
    bits_rep = 0 if arrays.repetition is None else int(arrays.repetition.max(initial=0)).bit_length()
    bits_def = 0 if arrays.definition is None else int(arrays.definition.max(initial=0)).bit_length()
    total = bits_rep + bits_def
    width = 0 if total == 0 else 1 if total <= 8 else 2 if total <= 16 else 4
    lists = sum(layer.is_list for layer in arrays.layers)
    data = b""
    starts = []
    remaining = iter(values)
    for entry, shown in enumerate(visible(arrays)):
        rep = 0 if arrays.repetition is None else int(arrays.repetition[entry])
        level = 0 if arrays.definition is None else int(arrays.definition[entry])
        if rep == lists:
            starts.append(len(data))
        data += (rep << bits_def | level).to_bytes(width, "little")
        if not shown:
            continue
        value = next(remaining)
        if not offset_bits:
            data += value
        elif level == 0:
            data += len(value).to_bytes(offset_bits // 8, "little") + value
    layout = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=arrays.count,
        num_visible_items=len(values),
        value_compression=encoding,
        layers=arrays.layers,
    )
    buffers = [data]
    if offset_bits:
        layout.bits_per_offset = offset_bits
    else:
        layout.bits_per_value = 8 * len(values[0])
    if offset_bits or lists:
        index_width = next(each for each in (1, 2, 4, 8) if len(data) < 1 << 8 * each)
        buffers.append(np.array([*starts, len(data)], f"<u{index_width}").tobytes())
    return Page(pb.PageLayout(full_zip_layout=layout), buffers, rows)


# ---- container ---------------------------------------------------------------------------------------------


def _direct(type_url: str, value: bytes) -> dict[str, Any]:
    return {"direct": {"encoding": AnyMessage(type_url=type_url, value=value).SerializeToString()}}


def make_file(
    schema: pa.Schema, columns: Sequence[Sequence[Page]], rows: int, version: tuple[int, int]
) -> bytes:
    """A whole file: the pages of every column, its schema, tables and footer."""
    data = bytearray()

    def append(buffer: bytes) -> int:
        data.extend(b"H" * (pad(len(data), 64) - len(data)))
        data.extend(buffer)
        return len(data) - len(buffer)

    metadata = []
    for pages in columns:
        messages = []
        first_row = 0
        for page in pages:
            messages.append(
                file_v2_pb2.ColumnMetadata.Page(
                    buffer_offsets=[append(buffer) for buffer in page.buffers],
                    buffer_sizes=list(map(len, page.buffers)),
                    length=page.length,
                    encoding=_direct(page.type_url, page.layout.SerializeToString()),
                    priority=first_row,
                )
            )
            first_row += page.length
        encoding = _direct("/lance.encodings.ColumnEncoding", b"\n\0")
        metadata.append(file_v2_pb2.ColumnMetadata(encoding=encoding, pages=messages).SerializeToString())
    fields = [
        file_pb2.Field(
            name=each.name,
            id=each.id,
            parent_id=each.parent_id,
            logical_type=each.logical_type,
            nullable=each.nullable,
        )
        for each in Schema.from_arrow(schema).walk()
    ]
    descriptor = file_pb2.FileDescriptor(schema={"fields": fields}, length=rows).SerializeToString()
    schema_at = append(descriptor)
    entries = []
    for message in metadata:
        entries += [len(data), len(message)]
        data.extend(message)
    metadata_at = schema_at + len(descriptor)
    table_at = len(data)
    data.extend(struct.pack(f"<{len(entries) + 2}Q", *entries, schema_at, len(descriptor)))
    data.extend(
        struct.pack(
            "<QQQIIHH4s",
            metadata_at,
            table_at,
            table_at + 16 * len(metadata),
            1,
            len(metadata),
            *version,
            b"LANC",
        )
    )
    return bytes(data)
