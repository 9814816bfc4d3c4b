"""Nullable: fixed-width values and fixed-size lists of them, with nulls (format 2.0, nullable)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.values import fixed_values, value_bytes
from lance_engine.format.pb import encodings_pb2 as pb


def encode(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding:
    """Any fixed-width array, and arrays of any type with only nulls."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count == len(array) and len(array):
        return _all_nulls()
    validity = None
    if array.null_count:
        bitmap = np.packbits(np.asarray(array.is_valid()), bitorder="little")
        validity = builder.flat(bitmap, 1)
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        values = _fixed_size_list(size, encode(builder, items, settings))
    else:
        fixed = fixed_values(array)
        values = builder.flat(value_bytes(fixed), fixed.bits)
    return no_nulls(values) if validity is None else _some_nulls(validity, values)


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Values without nulls."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def _some_nulls(validity: pb.ArrayEncoding, values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Values and a bitmap, 1 where there is a value."""
    return pb.ArrayEncoding(
        nullable=pb.Nullable(some_nulls=pb.Nullable.SomeNull(validity=validity, values=values))
    )


def _all_nulls() -> pb.ArrayEncoding:
    """Only nulls, of any type."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def _fixed_size_list(dimension: int, items: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Lists of `dimension` items each."""
    return pb.ArrayEncoding(fixed_size_list=pb.FixedSizeList(dimension=dimension, items=items))
