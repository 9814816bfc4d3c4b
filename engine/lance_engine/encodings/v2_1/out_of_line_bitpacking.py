"""Out-of-line bit-packing: one width for all blocks, kept in the message; levels only (format 2.1)."""

from __future__ import annotations

from lance_engine.encodings.v2_1 import flat
from lance_engine.format.pb import encodings21_pb2 as pb


def describe(bits: int, width: int) -> pb.CompressiveEncoding:
    """Blocks of 1024 integers of `bits` each, all packed to `width`."""
    return pb.CompressiveEncoding(
        out_of_line_bitpacking=pb.OutOfLineBitpacking(
            uncompressed_bits_per_value=bits, values=flat.describe(width)
        )
    )
