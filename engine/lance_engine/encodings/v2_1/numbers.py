"""Pages of values with a fixed width: whole, in chunks, or through a dictionary."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_1 import flat
from lance_engine.encodings.v2_1.candidate import Candidate, cheapest
from lance_engine.encodings.v2_1.choice import best_in_chunks
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.dictionary import DictionaryChoice, dictionary_choice, dictionary_limits
from lance_engine.encodings.v2_1.full_zip import WHOLE_BYTES, full_zip, plain_full_zip
from lance_engine.encodings.v2_1.mini_block import mini_block
from lance_engine.encodings.values import FixedValues, fixed_values, value_bytes, widen_bits, without_nulls

_DICTIONARY_BITS = (32, 64, 128, 256)
_INDEX_NS = 1.0


def page(context: PageContext) -> EncodedPage:
    """Fixed-width values under any levels."""
    values = fixed_values(context.leaf.array)
    wide = values.bits >= WHOLE_BYTES * 8 and context.settings.structure != "miniblock"
    if context.full_zip or wide:
        return _full_zip(context, values if values.bits > 1 else widen_bits(values))
    values = without_nulls(values, context.levels)
    best = best_in_chunks(context, context.table.numbers, values)
    if values.bits in _DICTIONARY_BITS and context.settings.compression != "none":
        choice = _dictionary(context, values, best)
        if choice is not None and cheapest([choice.candidate], [best], context.profile) is choice.candidate:
            return mini_block(context, choice.candidate, choice.dictionary)
    return mini_block(context, best)


def _full_zip(context: PageContext, values: FixedValues) -> EncodedPage:
    levels, encoding = context.levels, flat.describe(values.bits)
    if levels.max_rep == 0 and levels.max_def == 0:
        return plain_full_zip(value_bytes(values), encoding, levels, values.bits)
    page = kernels.encode_full_zip_fixed(*values.place, [], levels)
    return full_zip(page, encoding, levels, bits_per_value=values.bits)


def _dictionary(context: PageContext, values: FixedValues, best: Candidate) -> DictionaryChoice | None:
    limits = dictionary_limits(context.settings, values.count, best.size)
    if limits is None:
        return None
    page = kernels.build_fixed_dictionary(*values.place, *limits)
    if page is None:
        return None
    return dictionary_choice(context, page, flat.describe(values.bits), _INDEX_NS)
