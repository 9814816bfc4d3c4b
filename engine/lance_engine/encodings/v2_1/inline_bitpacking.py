"""In-line bit-packing: transposed blocks of 1024 integers, each with its own width (format 2.1)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1.candidate import Candidate, stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import INTEGER_BITS, FixedValues
from lance_engine.format.pb import encodings21_pb2 as pb

_VALUE_NS = 0.4


def describe(bits: int) -> pb.CompressiveEncoding:
    """Blocks of integers of `bits` each, with the width of a block in front."""
    return pb.CompressiveEncoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=bits))


def estimate(context: PageContext, values: FixedValues) -> Candidate | None:
    if values.bits not in INTEGER_BITS:
        return None
    size, _ = values.statistics
    if size >= values.nbytes:
        return None
    return stored((kernels.BitpackedValues(*values.place), describe(values.bits)), size, _VALUE_NS)
