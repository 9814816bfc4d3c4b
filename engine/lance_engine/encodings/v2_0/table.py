"""The encodings of values in version 2.0.

Each is a module with ``encode``, which returns None for unsuitable arrays; they are tried in this order.
There are few alternatives: strings with few distinct values are dictionary-encoded. The kernels read these
encodings (``engine/kernels/page/array.cpp``).
"""

from __future__ import annotations

from typing import Final, Protocol

import pyarrow as pa

from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_0 import binary, dictionary, nullable
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.format.pb import encodings_pb2 as pb


class ArrayEncoding(Protocol):
    """The module of an encoding."""

    def encode(self, builder: PageBuilder, array: pa.Array, settings: Settings, /) -> pb.ArrayEncoding | None:
        """The array in this encoding, its buffers added to the page."""


TABLE: Final[tuple[ArrayEncoding, ...]] = (dictionary, binary, nullable)
