"""Dictionary: distinct values are stored once, and the page contains indices into them (format 2.1)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_1 import flat, general, variable
from lance_engine.encodings.v2_1.candidate import Candidate
from lance_engine.encodings.v2_1.choice import best_in_chunks
from lance_engine.encodings.v2_1.context import COMPRESS_MIN_BYTES, PageContext
from lance_engine.encodings.v2_1.mini_block import Dictionary, mini_block
from lance_engine.encodings.values import (
    FixedValues,
    fixed_values,
    is_variable,
    offset_bits,
    value_bytes,
    without_nulls,
)
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb

_MIN_VALUES = 100
_MAX_ITEMS = 100_000
_INDEX_BITS = 32
# Items larger than the processor's cache make every look-up slower.
_CACHED_BYTES = 256 << 10
_UNCACHED_NS = 3.0


@dataclass(frozen=True, slots=True)
class DictionaryChoice:
    """A dictionary, and its indices as values of the page; the cost includes both."""

    candidate: Candidate
    dictionary: Dictionary


def dictionary_limits(settings: Settings, count: int, size: int) -> tuple[int, int] | None:
    """The maximum number of items and bytes that is worthwhile for `size` bytes; None for tiny pages."""
    if count < _MIN_VALUES:
        return None
    return min(count // settings.dictionary_divisor, _MAX_ITEMS), int(size * settings.dictionary_ratio)


def dictionary_choice(
    context: PageContext,
    page: kernels.DictionaryPage,
    encoding: pb.CompressiveEncoding,
    ns_per_value: float,
) -> DictionaryChoice:
    """`ns_per_value` is the time to look up an item."""
    items = page.take_items()
    dictionary = _dictionary(context, items, encoding, page.num_items)
    count = context.levels.slots
    indices = best_in_chunks(
        context, context.table.numbers, FixedValues(page.take_indices(), _INDEX_BITS, 0, count)
    )
    if len(items) > _CACHED_BYTES:
        ns_per_value += _UNCACHED_NS
    size = indices.size + memoryview(dictionary.items).nbytes
    return DictionaryChoice(
        Candidate(size, indices.decoding + count * ns_per_value, indices.build), dictionary
    )


def page(context: PageContext) -> EncodedPage | None:
    """An Arrow dictionary array, stored with its own dictionary."""
    array = context.leaf.array
    if not pa.types.is_dictionary(array.type):
        return None
    if context.must_zip:
        raise UnsupportedTypeError(
            "A row of this dictionary column has too many list levels for any page",
            column=context.leaf.path,
            remedy="Cast the column to its value type",
        )
    if array.dictionary.null_count:
        # Items cannot be null: re-encoding stores nulls in the indices instead.
        array = array.dictionary_decode().dictionary_encode().cast(array.type)
    items = array.dictionary
    keys = without_nulls(fixed_values(array.indices), context.levels)
    if is_variable(items.type):
        bits = offset_bits(items.type)
        encoding = variable.describe(bits)
        content: Buffer = variable.block((memoryview(item.as_buffer()).tobytes() for item in items), bits)
    else:
        values = fixed_values(items)
        content, encoding = value_bytes(values), flat.describe(values.bits)
    return mini_block(
        context,
        best_in_chunks(context, context.table.numbers, keys),
        _dictionary(context, content, encoding, len(items)),
    )


def _dictionary(
    context: PageContext, items: Buffer, encoding: pb.CompressiveEncoding, count: int
) -> Dictionary:
    scheme, level = context.settings.dictionary_compression, context.settings.dictionary_level
    size = memoryview(items).nbytes
    if context.version < (2, 2) or scheme == "none" or size < COMPRESS_MIN_BYTES:
        return Dictionary(items, encoding, count)
    packed = kernels.compress_block(items, general.kind_of(scheme), level or 0)
    if len(packed) > size * (1 - context.profile.least_gain):
        return Dictionary(items, encoding, count)
    return Dictionary(packed, general.describe(encoding, scheme, level), count)
