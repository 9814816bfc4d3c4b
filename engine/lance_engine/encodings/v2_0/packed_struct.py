"""Packed struct: the fields of each row stored together (format 2.0, packed struct)."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_engine.encodings.packed_rows import packed_bits, packed_rows
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.nullable import no_nulls
from lance_engine.format.pb import encodings_pb2 as pb
from lance_engine.schema_tree import Field


def packed_page(array: pa.StructArray, field: Field, path: str) -> EncodedPage:
    builder = PageBuilder()
    bits = [packed_bits(child.type) for child in array.type]
    encoding = stored_rows(builder, packed_rows(array, field, path), bits)
    return builder.page(len(array), encoding)


def stored_rows(builder: PageBuilder, rows: Buffer, field_bits: Sequence[int]) -> pb.ArrayEncoding:
    """Rows of fixed-width fields."""
    buffer = builder.add(rows)
    # Readers require a buffer for each field, though only the one with the rows is used.
    flats = [pb.Flat(bits_per_value=bits, buffer=buffer) for bits in field_bits]
    fields = [no_nulls(pb.ArrayEncoding(flat=flat)) for flat in flats]
    return pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=fields, buffer=buffer))
