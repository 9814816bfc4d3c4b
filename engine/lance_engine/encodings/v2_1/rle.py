"""Run-length encoding: values and the lengths of their runs in two buffers (format 2.1, RLE)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import Candidate, Encoded, stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import INTEGER_BITS, FixedValues
from lance_engine.format.pb import encodings21_pb2 as pb

_VALUE_NS = 1.0


def describe(bits: int) -> pb.CompressiveEncoding:
    """Values of `bits` each, and how often each repeats (1 to 255)."""
    return pb.CompressiveEncoding(rle=pb.Rle(values=flat.describe(bits), run_lengths=flat.describe(8)))


def estimate(context: PageContext, values: FixedValues) -> Candidate | None:
    if values.bits not in INTEGER_BITS:
        return None
    _, size = values.statistics
    runs = size // (values.bits // 8 + 1)
    if size >= values.nbytes or runs >= context.settings.run_threshold * values.count:
        return None
    coded: Encoded = (kernels.RunLengthValues(*values.place), describe(values.bits))
    return stored(coded, size, _VALUE_NS, around=lambda: coded)
