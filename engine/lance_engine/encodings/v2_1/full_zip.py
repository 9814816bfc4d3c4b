"""Full-zip layout: levels and value of each entry together, for large values (format 2.1, full-zip)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.v2_1.layers import layers_of
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.kernels import Levels

# Minimum size of values that are stored whole, one by one.
WHOLE_BYTES = 256


def full_zip(
    page: kernels.FullZipPage,
    encoding: pb.CompressiveEncoding,
    levels: Levels,
    *,
    bits_per_value: int = 0,
    bits_per_offset: int = 0,
) -> EncodedPage:
    """Levels and values entry by entry.

    Pass exactly one of `bits_per_value` (fixed width, including list validity) and `bits_per_offset`.
    """
    layout = pb.FullZipLayout(
        bits_rep=page.bits_rep,
        bits_def=page.bits_def,
        num_items=levels.entries,
        num_visible_items=levels.slots,
        value_compression=encoding,
        layers=layers_of(levels),
    )
    buffers: list[Buffer] = [page.take_data()]
    if bits_per_offset:
        layout.bits_per_offset = bits_per_offset
    else:
        layout.bits_per_value = bits_per_value
    if bits_per_offset or levels.max_rep > 0:
        buffers.append(page.take_repetition_index())
    return EncodedPage(levels.rows, pb.PageLayout(full_zip_layout=layout), tuple(buffers))


def plain_full_zip(
    values: Buffer, encoding: pb.CompressiveEncoding, levels: Levels, bits_per_value: int
) -> EncodedPage:
    """A full-zip page without any level: the fixed-width values themselves, byte for byte."""
    layout = pb.FullZipLayout(
        bits_per_value=bits_per_value,
        num_items=levels.entries,
        num_visible_items=levels.slots,
        value_compression=encoding,
        layers=layers_of(levels),
    )
    return EncodedPage(levels.rows, pb.PageLayout(full_zip_layout=layout), (values,))
