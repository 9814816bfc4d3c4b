"""General compression: LZ4 or zstd over the first buffer of another encoding (format 2.1, general)."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1.candidate import Candidate
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.format.pb import encodings21_pb2 as pb

# Maximum number of chunks that are compressed to estimate a size.
_SAMPLE_PART, _SAMPLE_CHUNKS = 4, 8
# Per output byte, input byte, and chunk.
_LZ4_NS = (0.05, 0.25, 100)
_ZSTD_NS = (0.5, 3.0, 4000)
# Per value of an LZ4 block whose sequences are equally long.
_UNIFORM_NS = 0.7
# The width of the values that such blocks can have.
_WIDE_BITS = 128


def describe(values: pb.CompressiveEncoding, scheme: str, level: int | None) -> pb.CompressiveEncoding:
    """`values` compressed with ``lz4`` or ``zstd``; LZ4 has no level."""
    compression = pb.BufferCompression(scheme=pb.BufferCompression.Scheme.Value(scheme.upper()))
    if level is not None and scheme == "zstd":
        compression.level = level
    return pb.CompressiveEncoding(general=pb.General(compression=compression, values=values))


def estimate(context: PageContext, inner: Candidate, scheme: str) -> Candidate:
    """`inner` compressed chunk by chunk; the size comes from a sample."""
    assert inner.around is not None
    values, encoding = inner.around()
    level = context.settings.level
    wide = encoding.WhichOneof("compression") == "flat" and encoding.flat.bits_per_value == _WIDE_BITS
    # Where the compression is requested, decoding time is not counted.
    weight = 0.0 if context.settings.general else context.profile.bytes_per_ns
    wrapped = kernels.CompressedValues(values, kind_of(scheme), level or 0, wide, weight)
    chunks = values.count / wrapped.chunk_length(0)
    size = kernels.estimated_bytes(wrapped, min(_SAMPLE_CHUNKS, 1 + int(chunks / _SAMPLE_PART)))
    out, into, chunk = _ZSTD_NS if scheme == "zstd" else _LZ4_NS
    expanding = inner.decoding + out * inner.size + into * size
    uniform = wrapped.uniform_share()
    decoding = (1 - uniform) * expanding + uniform * _UNIFORM_NS * values.count + chunk * chunks
    return Candidate(size, decoding, lambda: (wrapped, describe(encoding, scheme, level)))


def kind_of(scheme: str) -> kernels.Scheme:
    """The kernels' name for ``lz4`` or ``zstd``."""
    return kernels.Scheme.ZSTD if scheme == "zstd" else kernels.Scheme.LZ4
