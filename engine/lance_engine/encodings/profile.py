"""Profiles: how the size of a page is weighed against its decoding time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ProfileName = Literal["size", "balanced", "speed"]


@dataclass(frozen=True, slots=True)
class Profile:
    """Parameters for the choice between the encodings of a page.

    The cost of a candidate is its size in bytes plus `bytes_per_ns` for each nanosecond of decoding time: the
    bytes that storage would deliver in that time. `schemes` are the general compressions to try, which must
    save at least the share `least_gain`. Compressed chunks contain about `chunk_bytes` before compression:
    larger chunks compress better, but reading a single row decodes a whole chunk. Strings with a mean length
    of at least `full_zip_bytes` are stored one by one instead of in chunks. `byte_streams` enables splitting
    numbers into streams of their first, second, ... bytes before compression.
    """

    bytes_per_ns: float
    schemes: tuple[str, ...]
    least_gain: float
    chunk_bytes: int
    full_zip_bytes: int
    byte_streams: bool


PROFILES: Final[dict[str, Profile]] = {
    "size": Profile(
        bytes_per_ns=0.02,
        schemes=("lz4", "zstd"),
        least_gain=0.03,
        chunk_bytes=16 << 10,
        full_zip_bytes=1024,
        byte_streams=True,
    ),
    "balanced": Profile(
        bytes_per_ns=0.5,
        schemes=("lz4", "zstd"),
        least_gain=0.15,
        chunk_bytes=8 << 10,
        full_zip_bytes=256,
        byte_streams=False,
    ),
    "speed": Profile(
        bytes_per_ns=2.0,
        schemes=("lz4",),
        least_gain=0.3,
        chunk_bytes=8 << 10,
        full_zip_bytes=256,
        byte_streams=False,
    ),
}
BALANCED: Final = PROFILES["balanced"]
