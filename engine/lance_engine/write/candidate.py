"""The ways the values of a mini-block page could be stored, with the bytes and the decoding time of each.

Times are nanoseconds on one core of an ordinary machine. They need not be exact: they keep a slow encoding
from being chosen for a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.write.profile import Profile

# Chunks that a size is estimated from: a part of them, but not more than so many.
_SAMPLE_PART, _SAMPLE_CHUNKS = 4, 8
_COPY_NS_PER_BYTE = 0.1
# Per byte that comes out, byte that goes in, and chunk.
_LZ4_NS = (0.05, 0.25, 100)
_ZSTD_NS = (0.5, 3.0, 4000)

Encoded = tuple[kernels.MiniBlockValues, pb.CompressiveEncoding]


@dataclass(frozen=True, slots=True)
class Candidate:
    """`size` in bytes and `decoding` in nanoseconds, of the whole page; `build` makes what is stored."""

    size: int
    decoding: float
    build: Callable[[], Encoded]

    def cost(self, profile: Profile) -> float:
        return self.size + profile.bytes_per_ns * self.decoding


def cheapest(plain: list[Candidate], compressed: list[Candidate], profile: Profile) -> Candidate:
    """The one with the least cost; a compressed one only where it saves bytes clearly."""
    best = min(plain, key=lambda candidate: candidate.cost(profile))
    gainful = [item for item in compressed if item.size <= best.size * (1 - profile.least_gain)]
    return min([best, *gainful], key=lambda candidate: candidate.cost(profile))


def stored(encoded: Encoded, size: int, ns_per_value: float) -> Candidate:
    """Values of an encoding that is ready."""
    decoding = encoded[0].count * ns_per_value + size * _COPY_NS_PER_BYTE
    return Candidate(size, decoding, lambda: encoded)


def compressed(
    values: kernels.MiniBlockValues,
    encoding: pb.CompressiveEncoding,
    scheme: str,
    level: int | None,
    inner: Candidate,
) -> Candidate:
    """`inner` in a general compression, chunk by chunk; the size comes from a sample."""
    kind = kernels.Scheme.ZSTD if scheme == "zstd" else kernels.Scheme.LZ4
    wrapped = kernels.CompressedValues(values, kind, level or 0)
    chunks = values.count / wrapped.chunk_length(0)
    size = kernels.estimated_bytes(wrapped, min(_SAMPLE_CHUNKS, 1 + int(chunks / _SAMPLE_PART)))
    out, into, chunk = _ZSTD_NS if scheme == "zstd" else _LZ4_NS
    decoding = inner.decoding + out * inner.size + into * size + chunk * chunks
    return Candidate(size, decoding, lambda: (wrapped, v2_1.general(encoding, scheme, level)))
