"""Encodes consecutive rows of a column as pages of version 2.0, where structs and lists have columns too.

There is little to choose: numbers lie flat, strings of few kinds become a dictionary, and the bytes of
strings are compressed where the field's metadata ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_0 import encode as v2_0
from lance_engine.encodings.v2_0.encode import PageBuilder
from lance_engine.encodings.v2_1.encode import BlobPage, Buffer, EncodedPage, Page
from lance_engine.errors import SchemaMismatchError, UnsupportedTypeError
from lance_engine.format.pb import encodings_pb2 as pb
from lance_engine.schema_tree import Field
from lance_engine.write.blob import blob_payloads
from lance_engine.write.packed import packed_bits, packed_rows
from lance_engine.write.settings import Settings
from lance_engine.write.values import fixed_values, is_variable, value_bytes

# A page of strings becomes a dictionary when it has so many rows and not more kinds of strings than that.
_DICTIONARY_MIN_ROWS = 100
_DICTIONARY_MAX_ITEMS = 99
_DICTIONARY_SAMPLE = 4096
_DESCRIPTOR_BITS = (64, 64)
_NULL_BLOB = 1


def encode_column(array: pa.Array, field: Field) -> list[list[Page]]:
    """The pages of each column of a top-level field, in column order; a field gets one page for these rows.

    SchemaMismatchError when a null occurs in a field declared non-nullable.
    """
    columns: list[list[Page]] = []
    _descend(array, field, field, field.name, columns)
    return columns


def _descend(array: pa.Array, field: Field, top: Field, path: str, columns: list[list[Page]]) -> None:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count and not field.nullable:
        raise SchemaMismatchError(
            "A null in a column declared non-nullable",
            column=path,
            remedy="Remove the null, or declare the field nullable",
        )
    if pa.types.is_struct(array.type) and array.null_count:
        raise UnsupportedTypeError(
            "Files of version 2.0 cannot hold null structs",
            column=path,
            remedy="Write version 2.1, or replace the nulls by structs of nulls",
        )
    pages: list[Page] = []
    columns.append(pages)
    if field.is_leaf and field.logical_type != "struct":
        # A page without rows would say nothing.
        if len(array):
            pages.append(_leaf_page(array, field, Settings.of(field, top)))
    elif field.is_packed:
        if len(array):
            pages.append(_packed_page(array, field, path))
    elif pa.types.is_struct(array.type):
        pages.append(EncodedPage(len(array), v2_0.struct_header(), ()))
        for number, child in enumerate(field.children):
            _descend(array.field(number), child, top, f"{path}.{child.name}", columns)
    else:
        items, page = _list_page(array)
        if len(array):
            pages.append(page)
        (child,) = field.children
        _descend(items, child, top, f"{path}.{child.name}", columns)


def _leaf_page(array: pa.Array, field: Field, settings: Settings) -> Page:
    if field.is_blob:
        return _blob_page(array)
    builder = PageBuilder()
    return builder.page(len(array), _leaf(builder, array, settings))


def _leaf(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding:
    if pa.types.is_dictionary(array.type):
        return _dictionary(builder, array)
    if array.null_count == len(array):
        return v2_0.all_nulls()
    if is_variable(array.type):
        return _strings(builder, array, settings)
    return _nullable(builder, array)


def _nullable(builder: PageBuilder, array: pa.Array) -> pb.ArrayEncoding:
    """Fixed-width values or fixed-size lists of them, with their nulls."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count == len(array) and len(array):
        return v2_0.all_nulls()
    validity = None
    if array.null_count:
        bitmap = np.packbits(np.asarray(array.is_valid()), bitorder="little")
        validity = builder.flat(bitmap, 1)
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        items = array.values.slice(array.offset * size, len(array) * size)
        values = v2_0.fixed_size_list(size, _nullable(builder, items))
    else:
        fixed = fixed_values(array)
        values = builder.flat(value_bytes(fixed), fixed.bits)
    return v2_0.no_nulls(values) if validity is None else v2_0.some_nulls(validity, values)


# ---- strings -----------------------------------------------------------------------------------------


def _strings(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding:
    # Readers know dictionaries of one type of strings only.
    if pa.types.is_string(array.type) and len(array) >= _DICTIONARY_MIN_ROWS and not settings.compression:
        sample = array.slice(0, _DICTIONARY_SAMPLE)
        if len(sample.unique()) <= _DICTIONARY_MAX_ITEMS:
            coded = array.dictionary_encode()
            if len(coded.dictionary) <= _DICTIONARY_MAX_ITEMS:
                return _few_strings(builder, coded)
    return _binary(builder, array, settings)


def _few_strings(builder: PageBuilder, coded: pa.DictionaryArray) -> pb.ArrayEncoding:
    """Strings as 8-bit numbers of items, counted from 1; 0 is null."""
    numbers = coded.indices.fill_null(-1).to_numpy()
    indices = v2_0.no_nulls(builder.flat((numbers + 1).astype(np.uint8), 8))
    items = coded.dictionary
    return v2_0.dictionary(indices, _binary(builder, items, Settings()), len(items))


def _binary(builder: PageBuilder, array: pa.Array, settings: Settings) -> pb.ArrayEncoding:
    offsets = _offsets(array)
    lengths, valid = np.diff(offsets), np.asarray(array.is_valid())
    content: Buffer = memoryview(array.buffers()[2] or b"")[int(offsets[0]) : int(offsets[-1])]
    if array.null_count and lengths[~valid].any():
        # Bytes that nulls hide are not stored.
        content = memoryview(np.frombuffer(content, np.uint8)[np.repeat(valid, lengths)])
        lengths = np.where(valid, lengths, 0)
    compression = settings.general
    total = len(content)
    if compression:
        kind = kernels.Scheme.ZSTD if compression == "zstd" else kernels.Scheme.LZ4
        content = kernels.compress_block(content, kind, settings.level or 0)
    return builder.binary(_ends(lengths, valid, total), content, total + 1, compression)


def _offsets(array: pa.Array) -> np.ndarray:
    """The offsets of the values of a string, binary or list array: one more than values."""
    types = pa.types
    large = (types.is_large_string, types.is_large_binary, types.is_large_list)
    dtype = np.int64 if any(check(array.type) for check in large) else np.int32
    buffer = array.buffers()[1]
    if buffer is None or len(array) == 0:
        return np.zeros(1, dtype)
    return np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array) + 1]


def _ends(lengths: np.ndarray, valid: np.ndarray, total: int) -> np.ndarray:
    """Where values end; `total` + 1 is added to those of nulls."""
    ends = np.cumsum(lengths, dtype=np.uint64)
    ends[~valid] += np.uint64(total + 1)
    return ends


# ---- dictionaries ------------------------------------------------------------------------------------


def _dictionary(builder: PageBuilder, array: pa.DictionaryArray) -> pb.ArrayEncoding:
    """A column of a dictionary type: nulls are an item of their own."""
    items, keys = array.dictionary, array.indices
    if keys.null_count or items.null_count:
        # Decoding collects the nulls of keys and items alike; they become one item at the end.
        plain = array.dictionary_decode().dictionary_encode()
        items = pa.concat_arrays([plain.dictionary, pa.nulls(1, plain.dictionary.type)])
        keys = plain.indices.fill_null(len(items) - 1)
        try:
            keys = keys.cast(array.type.index_type)
        except pa.ArrowInvalid as error:
            raise UnsupportedTypeError(
                f"Indices of type {array.type.index_type} are too narrow for the items and one for nulls",
                remedy="Cast the column to its value type, or to a dictionary with wider indices",
            ) from error
    fixed = fixed_values(keys)
    indices = v2_0.no_nulls(builder.flat(value_bytes(fixed), fixed.bits))
    stored = _binary(builder, items, Settings()) if is_variable(items.type) else _nullable(builder, items)
    return v2_0.dictionary(indices, stored, len(items))


# ---- rows and values elsewhere -----------------------------------------------------------------------


def _packed_page(array: pa.StructArray, field: Field, path: str) -> EncodedPage:
    builder = PageBuilder()
    bits = [packed_bits(child.type) for child in array.type]
    encoding = builder.packed_struct(packed_rows(array, field, path), bits)
    return builder.page(len(array), encoding)


def _blob_page(array: pa.Array) -> BlobPage:
    descriptors = np.zeros((len(array), 2), np.uint64)
    descriptors[np.asarray(array.is_null()), 0] = _NULL_BLOB
    stored, payloads = blob_payloads(array)
    descriptors[stored, 1] = [len(payload) for payload in payloads]

    def finish(positions: Sequence[int]) -> EncodedPage:
        descriptors[stored, 0] = positions
        builder = PageBuilder()
        return builder.page(len(array), builder.packed_struct(descriptors, _DESCRIPTOR_BITS))

    return BlobPage(len(array), payloads, finish)


def _list_page(array: pa.Array) -> tuple[pa.Array, EncodedPage]:
    """The items of the lists without gaps, and the page that says where each list ends."""
    offsets, valid = _offsets(array), np.asarray(array.is_valid())
    lengths = np.diff(offsets)
    items = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    if array.null_count and lengths[~valid].any():
        items = items.filter(pa.array(np.repeat(valid, lengths)))
        lengths = np.where(valid, lengths, 0)
    total = len(items)
    builder = PageBuilder()
    encoding = builder.list_offsets(_ends(lengths, valid, total), total + 1, total)
    return items, builder.page(len(array), encoding)
