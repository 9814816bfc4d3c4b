"""Alternatives for storing the values of a mini-block page, with the size and decoding time of each.

Times are in nanoseconds on one core of an ordinary machine. They need not be exact: they prevent choosing a
slow encoding that saves only a few bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lance_engine import kernels
from lance_engine.encodings.profile import Profile
from lance_engine.format.pb import encodings21_pb2 as pb

_COPY_NS_PER_BYTE = 0.1

Encoded = tuple[kernels.MiniBlockValues, pb.CompressiveEncoding]


@dataclass(frozen=True, slots=True)
class Candidate:
    """`size` in bytes and `decoding` in nanoseconds are for the whole page; `build` creates the stored form.

    `around` creates the part to which general compression can be applied, if any; if not `alone`, it is only
    stored compressed. `asked` means that the field's metadata requests this encoding.
    """

    size: int
    decoding: float
    build: Callable[[], Encoded]
    around: Callable[[], Encoded] | None = None
    alone: bool = True
    asked: bool = False

    def cost(self, profile: Profile) -> float:
        return self.size + profile.bytes_per_ns * self.decoding


def cheapest(plain: list[Candidate], compressed: list[Candidate], profile: Profile) -> Candidate:
    """The cheapest candidate; a compressed one only if it clearly saves bytes."""
    best = min(plain, key=lambda candidate: candidate.cost(profile))
    gainful = [item for item in compressed if item.size <= best.size * (1 - profile.least_gain)]
    return min([best, *gainful], key=lambda candidate: candidate.cost(profile))


def stored(
    encoded: Encoded,
    size: int,
    ns_per_value: float,
    *,
    around: Callable[[], Encoded] | None = None,
    alone: bool = True,
    asked: bool = False,
) -> Candidate:
    """Values that are already encoded."""
    decoding = encoded[0].count * ns_per_value + size * _COPY_NS_PER_BYTE
    return Candidate(size, decoding, lambda: encoded, around, alone, asked)
