"""Dictionary: indices into the items of the page, one of which is null (format 2.0, dictionary)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_0 import nullable
from lance_engine.encodings.v2_0.binary import binary
from lance_engine.encodings.v2_0.builder import PageBuilder
from lance_engine.encodings.v2_0.nullable import no_nulls
from lance_engine.encodings.values import fixed_values, is_variable, value_bytes
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings_pb2 as pb

# A page of strings is dictionary-encoded if it has at least this many rows and at most this many distinct
# strings.
_MIN_ROWS = 100
_MAX_ITEMS = 99
_SAMPLE = 4096


def encode(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding | None:
    """A column of a dictionary type, or strings with few distinct values."""
    if pa.types.is_dictionary(array.type):
        return _dictionary(builder, array)
    # Readers only support dictionaries of one string type.
    if not pa.types.is_string(array.type) or len(array) < _MIN_ROWS or settings.compression:
        return None
    if array.null_count == len(array) or len(array.slice(0, _SAMPLE).unique()) > _MAX_ITEMS:
        return None
    coded = array.dictionary_encode()
    return _few_strings(builder, coded) if len(coded.dictionary) <= _MAX_ITEMS else None


def _few_strings(builder: PageBuilder, coded: pa.DictionaryArray) -> pb.ArrayEncoding:
    """Strings as 8-bit item numbers, starting with 1; 0 is null."""
    numbers = coded.indices.fill_null(-1).to_numpy()
    indices = no_nulls(builder.flat((numbers + 1).astype(np.uint8), 8))
    items = coded.dictionary
    return _describe(indices, binary(builder, items, Settings()), len(items))


def _dictionary(builder: PageBuilder, array: pa.DictionaryArray) -> pb.ArrayEncoding:
    """A column of a dictionary type; null is a separate item."""
    items, keys = array.dictionary, array.indices
    if keys.null_count or items.null_count:
        # Decoding finds nulls in keys and in items; both become one item at the end.
        plain = array.dictionary_decode().dictionary_encode()
        items = pa.concat_arrays([plain.dictionary, pa.nulls(1, plain.dictionary.type)])
        keys = plain.indices.fill_null(len(items) - 1)
        try:
            keys = keys.cast(array.type.index_type)
        except pa.ArrowInvalid as error:
            raise UnsupportedTypeError(
                f"The index type {array.type.index_type} is too narrow for the dictionary plus a null entry",
                remedy="Cast the column to its value type, or to a dictionary with a wider index type",
            ) from error
    fixed = fixed_values(keys)
    indices = no_nulls(builder.flat(value_bytes(fixed), fixed.bits))
    stored = (binary if is_variable(items.type) else nullable.encode)(builder, items, Settings())
    return _describe(indices, stored, len(items))


def _describe(indices: pb.ArrayEncoding, items: pb.ArrayEncoding, count: int) -> pb.ArrayEncoding:
    """Indices into `count` items."""
    return pb.ArrayEncoding(
        dictionary=pb.Dictionary(indices=indices, items=items, num_dictionary_items=count)
    )
