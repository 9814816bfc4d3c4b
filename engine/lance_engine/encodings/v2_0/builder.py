"""The buffers of one page of version 2.0, and plain values in them."""

from __future__ import annotations

from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.format.pb import encodings_pb2 as pb


class PageBuilder:
    """Collects the buffers of a page; `page` makes the page of the outermost encoding."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def page(self, rows: int, encoding: pb.ArrayEncoding) -> EncodedPage:
        return EncodedPage(rows, encoding, tuple(self._buffers))

    def flat(self, values: Buffer, bits: int, compression: str = "") -> pb.ArrayEncoding:
        """Fixed-width values one after the other (format 2.0, flat).

        `compression` names what the buffer is compressed with already.
        """
        flat = pb.Flat(bits_per_value=bits, buffer=self.add(values))
        if compression:
            flat.compression.CopyFrom(pb.Compression(scheme=compression))
        return pb.ArrayEncoding(flat=flat)

    def add(self, buffer: Buffer) -> pb.Buffer:
        """What refers to another buffer of the page."""
        self._buffers.append(buffer)
        return pb.Buffer(buffer_index=len(self._buffers) - 1)
