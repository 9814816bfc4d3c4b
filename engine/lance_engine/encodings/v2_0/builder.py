"""The buffers of one page of version 2.0, and plain values in them."""

from __future__ import annotations

from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.format.pb import encodings_pb2 as pb


class PageBuilder:
    """Collects the buffers of a page; `page` creates the page from the outermost encoding."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def page(self, rows: int, encoding: pb.ArrayEncoding) -> EncodedPage:
        return EncodedPage(rows, encoding, tuple(self._buffers))

    def flat(self, values: Buffer, bits: int, compression: str = "") -> pb.ArrayEncoding:
        """Contiguous fixed-width values (format 2.0, flat).

        `compression` is the compression that was already applied to the buffer.
        """
        flat = pb.Flat(bits_per_value=bits, buffer=self.add(values))
        if compression:
            flat.compression.CopyFrom(pb.Compression(scheme=compression))
        return pb.ArrayEncoding(flat=flat)

    def add(self, buffer: Buffer) -> pb.Buffer:
        """A reference to another buffer of the page."""
        self._buffers.append(buffer)
        return pb.Buffer(buffer_index=len(self._buffers) - 1)
