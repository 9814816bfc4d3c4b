"""From Arrow buffers to a page of version 2.0: array encodings and the buffers that they refer to.

Every method of `PageBuilder` adds the buffers of one array and returns its encoding; `page` then makes the
page of the outermost one.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_engine.encodings.v2_1.encode import Buffer, EncodedPage
from lance_engine.format.pb import encodings_pb2 as pb

_INDEX_BITS = 64


class PageBuilder:
    """Collects the buffers of one page."""

    def __init__(self) -> None:
        self._buffers: list[Buffer] = []

    def page(self, rows: int, encoding: pb.ArrayEncoding) -> EncodedPage:
        return EncodedPage(rows, encoding, tuple(self._buffers))

    def flat(self, values: Buffer, bits: int, compression: str = "") -> pb.ArrayEncoding:
        """Fixed-width values; `compression` names what the buffer is compressed with already."""
        flat = pb.Flat(bits_per_value=bits, buffer=self._add(values))
        if compression:
            flat.compression.CopyFrom(pb.Compression(scheme=compression))
        return pb.ArrayEncoding(flat=flat)

    def binary(
        self, ends: Buffer, content: Buffer, null_adjustment: int, compression: str = ""
    ) -> pb.ArrayEncoding:
        """Ends of the values as 64-bit integers, `null_adjustment` added where null, and their bytes."""
        indices = no_nulls(self.flat(ends, _INDEX_BITS))
        values = self.flat(content, 8, compression)
        return pb.ArrayEncoding(
            binary=pb.Binary(indices=indices, bytes=values, null_adjustment=null_adjustment)
        )

    def list_offsets(self, ends: Buffer, null_adjustment: int, num_items: int) -> pb.ArrayEncoding:
        """Ends of lists counted in the items of this page; nulls as in `binary`."""
        offsets = no_nulls(self.flat(ends, _INDEX_BITS))
        return pb.ArrayEncoding(
            list=pb.List(offsets=offsets, null_offset_adjustment=null_adjustment, num_items=num_items)
        )

    def packed_struct(self, rows: Buffer, field_bits: Sequence[int]) -> pb.ArrayEncoding:
        """Rows of fixed-width fields side by side."""
        buffer = self._add(rows)
        # Readers demand a buffer for each field, though only the one of the rows has a meaning.
        flats = [pb.Flat(bits_per_value=bits, buffer=buffer) for bits in field_bits]
        fields = [no_nulls(pb.ArrayEncoding(flat=flat)) for flat in flats]
        return pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=fields, buffer=buffer))

    def _add(self, buffer: Buffer) -> pb.Buffer:
        self._buffers.append(buffer)
        return pb.Buffer(buffer_index=len(self._buffers) - 1)


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Values without nulls."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def some_nulls(validity: pb.ArrayEncoding, values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Values beside a bitmap, 1 where there is one."""
    return pb.ArrayEncoding(
        nullable=pb.Nullable(some_nulls=pb.Nullable.SomeNull(validity=validity, values=values))
    )


def all_nulls() -> pb.ArrayEncoding:
    """Nothing but nulls, of any type."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def fixed_size_list(dimension: int, items: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Lists of `dimension` items each."""
    return pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=dimension, items=items))


def dictionary(indices: pb.ArrayEncoding, items: pb.ArrayEncoding, count: int) -> pb.ArrayEncoding:
    """Indices into `count` items."""
    return pb.ArrayEncoding(
        dictionary=pb.Dictionary(indices=indices, items=items, num_dictionary_items=count)
    )


def struct_header() -> pb.ArrayEncoding:
    """What stands for a struct, whose children have columns of their own."""
    return pb.ArrayEncoding(struct=pb.SimpleStruct())
