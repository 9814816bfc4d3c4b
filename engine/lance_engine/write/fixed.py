"""Pages of values with a fixed width: whole, in chunks, or through a dictionary."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import EncodedPage
from lance_engine.write.candidate import Candidate, cheapest
from lance_engine.write.dictionary import DictionaryChoice, dictionary_choice, dictionary_limits
from lance_engine.write.numbers import best_encoding
from lance_engine.write.page_context import PageContext
from lance_engine.write.values import FixedValues, value_bytes, widen_bits, without_nulls

# Values from this size on are stored whole, one by one (format 2.1, full-zip layout).
FULL_ZIP_BYTES = 256
_DICTIONARY_BITS = (32, 64, 128, 256)
_INDEX_NS = 1.0


def fixed_page(context: PageContext, values: FixedValues) -> EncodedPage:
    """Fixed-width values under any levels."""
    wide = values.bits >= FULL_ZIP_BYTES * 8 and context.settings.structure != "miniblock"
    if context.full_zip or wide:
        return _full_zip(context, values if values.bits > 1 else widen_bits(values))
    values = without_nulls(values, context.levels)
    best = best_encoding(context, values)
    if values.bits in _DICTIONARY_BITS and context.settings.compression != "none":
        choice = _dictionary(context, values, best)
        if choice is not None and cheapest([choice.candidate], [best], context.profile) is choice.candidate:
            return context.mini_block(choice.candidate, choice.dictionary)
    return context.mini_block(best)


def _full_zip(context: PageContext, values: FixedValues) -> EncodedPage:
    levels, encoding = context.levels, v2_1.flat(values.bits)
    if levels.max_rep == 0 and levels.max_def == 0:
        return v2_1.plain_full_zip_page(value_bytes(values), encoding, levels, values.bits)
    page = kernels.encode_full_zip_fixed(values.buffer, values.bits, values.offset, values.count, [], levels)
    return v2_1.full_zip_page(page, encoding, levels, bits_per_value=values.bits)


def _dictionary(context: PageContext, values: FixedValues, best: Candidate) -> DictionaryChoice | None:
    limits = dictionary_limits(context.settings, values.count, best.size)
    if limits is None:
        return None
    found = kernels.build_fixed_dictionary(values.buffer, values.bits, values.offset, values.count, *limits)
    if found is None:
        return None
    return dictionary_choice(context, found, v2_1.flat(values.bits), _INDEX_NS)
