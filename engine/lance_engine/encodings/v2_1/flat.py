"""Flat: contiguous fixed-width values, booleans as a bitmap (format 2.1, flat)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1.candidate import Candidate, Encoded, stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import FixedValues
from lance_engine.format.pb import encodings21_pb2 as pb


def describe(bits: int) -> pb.CompressiveEncoding:
    """Unchanged values of `bits` each."""
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def estimate(context: PageContext, values: FixedValues) -> Candidate:
    def wide() -> Encoded:
        """In larger chunks, which compress better."""
        chunk_bytes = context.profile.chunk_bytes + context.wide_chunks
        return kernels.FlatValues(*values.place, chunk_bytes), describe(values.bits)

    plain = kernels.FlatValues(*values.place)
    return stored((plain, describe(values.bits)), values.nbytes, 0.0, around=wide)
