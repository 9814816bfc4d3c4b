"""Pages that store distinct values once and indices into them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import Buffer, Dictionary, EncodedPage
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.write.candidate import Candidate
from lance_engine.write.numbers import best_encoding
from lance_engine.write.page_context import COMPRESS_MIN_BYTES, PageContext
from lance_engine.write.settings import Settings
from lance_engine.write.values import (
    FixedValues,
    fixed_values,
    is_variable,
    offset_bits,
    value_bytes,
    without_nulls,
)

_MIN_VALUES = 100
_MAX_ITEMS = 100_000
_INDEX_BITS = 32
# Items that outgrow the processor's cache make every look-up slower.
_CACHED_BYTES = 256 << 10
_UNCACHED_NS = 3.0


@dataclass(frozen=True, slots=True)
class DictionaryChoice:
    """A dictionary, and its indices as values of the page; the cost is that of both."""

    candidate: Candidate
    dictionary: Dictionary


def dictionary_limits(settings: Settings, count: int, size: int) -> tuple[int, int] | None:
    """The most items and bytes that are worth it beside `size` bytes; None for tiny pages."""
    if count < _MIN_VALUES:
        return None
    return min(count // settings.dictionary_divisor, _MAX_ITEMS), int(size * settings.dictionary_ratio)


def dictionary_choice(
    context: PageContext,
    found: kernels.DictionaryPage,
    encoding: pb.CompressiveEncoding,
    ns_per_value: float,
) -> DictionaryChoice:
    """`ns_per_value` is the time to look up an item."""
    items = found.take_items()
    dictionary = _dictionary(context, items, encoding, found.num_items)
    count = context.levels.slots
    indices = best_encoding(context, FixedValues(found.take_indices(), _INDEX_BITS, 0, count))
    if len(items) > _CACHED_BYTES:
        ns_per_value += _UNCACHED_NS
    size = indices.size + memoryview(dictionary.items).nbytes
    return DictionaryChoice(
        Candidate(size, indices.decoding + count * ns_per_value, indices.build), dictionary
    )


def dictionary_page(context: PageContext, array: pa.Array) -> EncodedPage:
    """An Arrow dictionary array, stored with the dictionary it has."""
    if context.must_zip:
        raise UnsupportedTypeError(
            "A row of this dictionary column has too many list levels for any page",
            column=context.leaf.path,
            remedy="Cast the column to its value type",
        )
    if array.dictionary.null_count:
        # Items cannot be null: re-encoding moves the nulls into the indices.
        array = array.dictionary_decode().dictionary_encode().cast(array.type)
    items = array.dictionary
    keys = without_nulls(fixed_values(array.indices), context.levels)
    if is_variable(items.type):
        bits = offset_bits(items.type)
        encoding = v2_1.variable(bits)
        content: Buffer = v2_1.variable_block(
            (memoryview(item.as_buffer()).tobytes() for item in items), bits
        )
    else:
        values = fixed_values(items)
        content, encoding = value_bytes(values), v2_1.flat(values.bits)
    return context.mini_block(
        best_encoding(context, keys), _dictionary(context, content, encoding, len(items))
    )


def _dictionary(
    context: PageContext, items: Buffer, encoding: pb.CompressiveEncoding, count: int
) -> Dictionary:
    scheme, level = context.settings.dictionary_compression, context.settings.dictionary_level
    size = memoryview(items).nbytes
    if context.version < (2, 2) or scheme == "none" or size < COMPRESS_MIN_BYTES:
        return Dictionary(items, encoding, count)
    kind = kernels.Scheme.ZSTD if scheme == "zstd" else kernels.Scheme.LZ4
    packed = kernels.compress_block(items, kind, level or 0)
    if len(packed) > size * (1 - context.profile.least_gain):
        return Dictionary(items, encoding, count)
    return Dictionary(packed, v2_1.general(encoding, scheme, level), count)
