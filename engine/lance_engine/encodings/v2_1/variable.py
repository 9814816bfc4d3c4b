"""Variable: strings and binary values after their offsets (format 2.1, variable)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from lance_engine import kernels
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import Candidate, Encoded, stored
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.values import Strings
from lance_engine.format.pb import encodings21_pb2 as pb

_VALUE_NS = 2.0


def describe(offset_bits: int) -> pb.CompressiveEncoding:
    """Offsets of `offset_bits` each, and bytes."""
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat.describe(offset_bits)))


def estimate(context: PageContext, values: Strings) -> Candidate:
    encoding = describe(values.input.offset_bits)

    def wide() -> Encoded:
        """In larger chunks, which compress better."""
        chunk_bytes = context.profile.chunk_bytes if context.wide_chunks else None
        return in_chunks(values.input, context.string_chunk_bytes or chunk_bytes), encoding

    plain = in_chunks(values.input, context.string_chunk_bytes)
    return stored((plain, encoding), values.nbytes, _VALUE_NS, around=wide)


def in_chunks(values: kernels.VariableInput, chunk_bytes: int | None) -> kernels.VariableValues:
    """Values cut into chunks of about `chunk_bytes`."""
    return kernels.VariableValues(values, chunk_bytes) if chunk_bytes else kernels.VariableValues(values)


def block(values: Iterable[bytes], offset_bits: int) -> bytes:
    """Dictionary items of variable width in block framing: two header words, offsets from zero, bytes."""
    items = list(values)
    dtype = np.dtype(f"<u{offset_bits // 8}")
    ends = np.cumsum([0, *map(len, items)], dtype=dtype)
    header = np.array([offset_bits, (2 + len(ends)) * dtype.itemsize], dtype=dtype)
    return header.tobytes() + ends.tobytes() + b"".join(items)
