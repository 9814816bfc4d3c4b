"""Mini-block layout: small values in compressed chunks with an index of chunks (format 2.1, mini-block)."""

from __future__ import annotations

from dataclasses import dataclass

from lance_engine import kernels
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.v2_1 import flat, out_of_line_bitpacking
from lance_engine.encodings.v2_1.candidate import Candidate
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.layers import LEVEL_BITS, layers_of
from lance_engine.format.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class Dictionary:
    """The shared items of a mini-block page, whose values are then indices into them."""

    items: Buffer
    encoding: pb.CompressiveEncoding
    num_items: int


def mini_block(context: PageContext, chosen: Candidate, dictionary: Dictionary | None = None) -> EncodedPage:
    """Values in their chosen encoding and their levels, divided into chunks."""
    values, encoding = chosen.build()
    # Version 2.2 requires wider chunk words, 2.1 does not allow them.
    return layout(
        values, encoding, context.levels, large_chunks=context.version >= (2, 2), dictionary=dictionary
    )


def layout(
    values: kernels.MiniBlockValues,
    encoding: pb.CompressiveEncoding,
    levels: kernels.Levels,
    *,
    large_chunks: bool = False,
    dictionary: Dictionary | None = None,
) -> EncodedPage:
    """The same for values that are already encoded."""
    page = kernels.encode_mini_block(values, levels, large_chunks)
    layout = pb.MiniBlockLayout(
        value_compression=encoding,
        layers=layers_of(levels),
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


def _level_encoding(encoding: kernels.LevelEncoding) -> pb.CompressiveEncoding:
    if encoding.packed:
        return out_of_line_bitpacking.describe(LEVEL_BITS, encoding.width)
    return flat.describe(LEVEL_BITS)
