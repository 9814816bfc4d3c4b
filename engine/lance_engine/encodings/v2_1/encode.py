"""From encoded values to a page: layout messages and page buffers of format 2.1 and 2.2.

Every function that returns a `CompressiveEncoding` describes one compressive encoding; every function that
returns an `EncodedPage` assembles one page layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lance_engine import kernels
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import encodings_pb2
from lance_engine.kernels import Levels

# Anything with the buffer protocol: numpy arrays that kernels return, or pyarrow buffers written as they are.
Buffer: TypeAlias = Any
_LEVEL_BITS = 16
# Bytes of levels from which compression pays, and of a constant that stands in the layout message.
_COMPRESSED_LEVELS = 4096
_INLINE_BYTES = 32


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """One page of one column, ready for the file: its rows, its encoding, its buffers in order.

    `rows` are top-level rows; in version 2.0 they are items where the column lies below a list.
    """

    rows: int
    layout: pb.PageLayout | encodings_pb2.ArrayEncoding
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class BlobPage:
    """A page whose values lie outside of it: `finish` makes the page from the positions of the `payloads`."""

    rows: int
    payloads: tuple[Buffer, ...]
    finish: Callable[[Sequence[int]], EncodedPage]


Page: TypeAlias = EncodedPage | BlobPage


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The shared items of a mini-block page, whose values are then indices into them."""

    items: Buffer
    encoding: pb.CompressiveEncoding
    num_items: int


# ---- compressive encodings ---------------------------------------------------------------------------


def flat(bits: int) -> pb.CompressiveEncoding:
    """Fixed-width values as they are."""
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def inline_bitpacking(bits: int) -> pb.CompressiveEncoding:
    """Blocks of 1024 integers, each block with its width in front."""
    return pb.CompressiveEncoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=bits))


def out_of_line_bitpacking(bits: int, width: int) -> pb.CompressiveEncoding:
    """Blocks of 1024 integers, all of the width stated here."""
    return pb.CompressiveEncoding(
        out_of_line_bitpacking=pb.OutOfLineBitpacking(uncompressed_bits_per_value=bits, values=flat(width))
    )


def run_length(bits: int) -> pb.CompressiveEncoding:
    """Values, and beside them how often each repeats (1 to 255)."""
    return pb.CompressiveEncoding(rle=pb.Rle(values=flat(bits), run_lengths=flat(8)))


def byte_stream_split(bits: int) -> pb.CompressiveEncoding:
    """First bytes of all values, then second bytes, and so on."""
    return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=flat(bits)))


def variable(offset_bits: int) -> pb.CompressiveEncoding:
    """Offsets and bytes."""
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(offset_bits)))


def fsst(symbol_table: bytes, values: pb.CompressiveEncoding) -> pb.CompressiveEncoding:
    """Values coded one by one with the symbols of a table (2312 bytes)."""
    return pb.CompressiveEncoding(fsst=pb.Fsst(symbol_table=symbol_table, values=values))


def general(values: pb.CompressiveEncoding, scheme: str, level: int | None) -> pb.CompressiveEncoding:
    """`values` compressed with ``lz4`` or ``zstd``; LZ4 has no level."""
    compression = pb.BufferCompression(scheme=pb.BufferCompression.Scheme.Value(scheme.upper()))
    if level is not None and scheme == "zstd":
        compression.level = level
    return pb.CompressiveEncoding(general=pb.General(compression=compression, values=values))


def fixed_size_list(layers: Sequence[tuple[int, bool]], item_bits: int) -> pb.CompressiveEncoding:
    """Lists of (dimension, items may be null), outermost first, around flat items; 0 bits: all are null."""
    encoding = flat(item_bits) if item_bits else pb.CompressiveEncoding(constant=pb.Constant())
    for dimension, has_validity in reversed(layers):
        encoding = pb.CompressiveEncoding(
            fixed_size_list=pb.FixedSizeList(
                items_per_value=dimension, values=encoding, has_validity=has_validity
            )
        )
    return encoding


def packed_struct(field_bits: Sequence[int]) -> pb.CompressiveEncoding:
    """Rows of fixed-width fields side by side."""
    return pb.CompressiveEncoding(
        packed_struct=pb.PackedStruct(bits_per_value=field_bits, values=flat(sum(field_bits)))
    )


def variable_packed_struct(
    fields: Sequence[tuple[pb.CompressiveEncoding, int, bool]],
) -> pb.CompressiveEncoding:
    """Rows of fields side by side: (encoding of one value, its bits or those of its length, has a length)."""
    encodings = [
        pb.VariablePackedStruct.FieldEncoding(value=value, bits_per_length=bits)
        if has_length
        else pb.VariablePackedStruct.FieldEncoding(value=value, bits_per_value=bits)
        for value, bits, has_length in fields
    ]
    return pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=encodings))


# ---- page layouts ------------------------------------------------------------------------------------


def mini_block_page(
    values: kernels.MiniBlockValues,
    encoding: pb.CompressiveEncoding,
    levels: Levels,
    *,
    large_chunks: bool = False,
    dictionary: Dictionary | None = None,
) -> EncodedPage:
    """Cut values and levels into chunks (format 2.1, mini-block layout).

    `large_chunks` selects the wider chunk words that format 2.2 demands and 2.1 refuses.
    """
    page = kernels.encode_mini_block(values, levels, large_chunks)
    layout = pb.MiniBlockLayout(
        value_compression=encoding,
        layers=_layers(levels),
        num_buffers=values.buffers,
        num_items=levels.slots,
        has_large_chunk=large_chunks,
    )
    if page.rep.present:
        layout.rep_compression.CopyFrom(_level_encoding(page.rep))
        layout.repetition_index_depth = 1
    if page.def_.present:
        layout.def_compression.CopyFrom(_level_encoding(page.def_))
    buffers: list[Buffer] = [page.take_chunk_metadata(), page.take_chunk_data()]
    if dictionary is not None:
        layout.dictionary.CopyFrom(dictionary.encoding)
        layout.num_dictionary_items = dictionary.num_items
        buffers.append(dictionary.items)
    if page.rep.present:
        buffers.append(page.take_repetition_index())
    return EncodedPage(levels.rows, pb.PageLayout(mini_block_layout=layout), tuple(buffers))


def full_zip_page(
    page: kernels.FullZipPage,
    encoding: pb.CompressiveEncoding,
    levels: Levels,
    *,
    bits_per_value: int = 0,
    bits_per_offset: int = 0,
) -> EncodedPage:
    """Levels and values entry by entry (format 2.1, full-zip layout).

    Give exactly one of `bits_per_value` (fixed width, list validity included) and `bits_per_offset`.
    """
    layout = pb.FullZipLayout(
        bits_rep=page.bits_rep,
        bits_def=page.bits_def,
        num_items=levels.entries,
        num_visible_items=levels.slots,
        value_compression=encoding,
        layers=_layers(levels),
    )
    buffers: list[Buffer] = [page.take_data()]
    if bits_per_offset:
        layout.bits_per_offset = bits_per_offset
    else:
        layout.bits_per_value = bits_per_value
    if bits_per_offset or levels.max_rep > 0:
        buffers.append(page.take_repetition_index())
    return EncodedPage(levels.rows, pb.PageLayout(full_zip_layout=layout), tuple(buffers))


def plain_full_zip_page(
    values: Buffer, encoding: pb.CompressiveEncoding, levels: Levels, bits_per_value: int
) -> EncodedPage:
    """A full-zip page without any level: the fixed-width values themselves, byte for byte."""
    layout = pb.FullZipLayout(
        bits_per_value=bits_per_value,
        num_items=levels.entries,
        num_visible_items=levels.slots,
        value_compression=encoding,
        layers=_layers(levels),
    )
    return EncodedPage(levels.rows, pb.PageLayout(full_zip_layout=layout), (values,))


def blob_page(descriptors: EncodedPage, levels: Levels) -> EncodedPage:
    """A page of descriptors in place of the values of a blob column (format 2.1, blob layout)."""
    layout = pb.BlobLayout(inner_layout=descriptors.layout, layers=_layers(levels))
    return EncodedPage(levels.rows, pb.PageLayout(blob_layout=layout), descriptors.buffers)


def all_null_page(levels: Levels, *, compress: bool = False) -> EncodedPage:
    """A page without any value (format 2.1, constant layout): nested nulls and empty lists are levels.

    `compress` makes many levels smaller, which format 2.2 allows and 2.1 refuses.
    """
    layout = pb.ConstantLayout(layers=_layers(levels))
    if list(levels.layers) == [pb.REPDEF_NULLABLE_ITEM]:
        return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), ())
    rep, def_ = levels.rep, levels.def_
    if compress and len(rep) >= _COMPRESSED_LEVELS:
        layout.rep_compression.CopyFrom(general(flat(_LEVEL_BITS), "zstd", 0))
        layout.num_rep_values = levels.entries
        rep = kernels.compress_block(rep, kernels.Scheme.ZSTD, 0)
    if compress and len(def_) >= _COMPRESSED_LEVELS:
        layout.def_compression.CopyFrom(general(flat(_LEVEL_BITS), "zstd", 0))
        layout.num_def_values = levels.entries
        def_ = kernels.compress_block(def_, kernels.Scheme.ZSTD, 0)
    return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), (rep, def_))


def constant_page(value: Sequence[bytes], levels: Levels) -> EncodedPage:
    """A page whose values all equal one (format 2.2, constant scalar); `value` are its Arrow buffers."""
    layout = pb.ConstantLayout(layers=_layers(levels))
    buffers: list[Buffer] = []
    if len(value) == 1 and len(value[0]) <= _INLINE_BYTES:
        layout.inline_value = value[0]
    else:
        sizes = np.array([len(value), *map(len, value)], "<u4")
        buffers.append(sizes.tobytes() + b"".join(value))
    if levels.max_rep or levels.max_def:
        buffers += [levels.rep, levels.def_]
    return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), tuple(buffers))


def empty_struct_page(rows: int) -> EncodedPage:
    """Rows of a struct without children, which hold nothing."""
    layout = pb.ConstantLayout(layers=[pb.REPDEF_NULLABLE_ITEM])
    return EncodedPage(rows, pb.PageLayout(constant_layout=layout), ())


def _layers(levels: Levels) -> list[str]:
    return [pb.RepDefLayer.Name(layer) for layer in levels.layers]


def _level_encoding(encoding: kernels.LevelEncoding) -> pb.CompressiveEncoding:
    if encoding.packed:
        return out_of_line_bitpacking(_LEVEL_BITS, encoding.width)
    return flat(_LEVEL_BITS)


def variable_block(values: Iterable[bytes], offset_bits: int) -> bytes:
    """Dictionary items of variable width in block framing: two header words, offsets from zero, bytes."""
    items = list(values)
    dtype = np.dtype(f"<u{offset_bits // 8}")
    ends = np.cumsum([0, *map(len, items)], dtype=dtype)
    header = np.array([offset_bits, (2 + len(ends)) * dtype.itemsize], dtype=dtype)
    return header.tobytes() + ends.tobytes() + b"".join(items)
