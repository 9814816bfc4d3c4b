"""Encoded pages, ready for a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import encodings_pb2

# Any object with the buffer protocol: numpy arrays from kernels, or pyarrow buffers that are written
# unchanged.
Buffer: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """One page of one column, ready for the file: its rows, its encoding, its buffers in order.

    `rows` are top-level rows; in version 2.0 they are items where the column is below a list.
    """

    rows: int
    layout: pb.PageLayout | encodings_pb2.ArrayEncoding
    buffers: tuple[Buffer, ...]


@dataclass(frozen=True, slots=True)
class BlobPage:
    """A page whose values are stored elsewhere: `finish` creates it from the positions of `payloads`."""

    rows: int
    payloads: tuple[Buffer, ...]
    finish: Callable[[Sequence[int]], EncodedPage]


Page: TypeAlias = EncodedPage | BlobPage
