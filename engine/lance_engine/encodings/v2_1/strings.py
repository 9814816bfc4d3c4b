"""Pages of strings and binary values: in chunks, through a dictionary, or one by one."""

from __future__ import annotations

from lance_engine import kernels
from lance_engine.encodings.page import EncodedPage
from lance_engine.encodings.v2_1 import fsst, general, variable
from lance_engine.encodings.v2_1.choice import best_in_chunks
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.dictionary import DictionaryChoice, dictionary_choice, dictionary_limits
from lance_engine.encodings.v2_1.full_zip import full_zip
from lance_engine.encodings.v2_1.mini_block import mini_block
from lance_engine.encodings.values import Strings, is_variable, strings_of

# Maximum length of a value in a chunk: two of them must fit into the 32 KiB of a 2.1 chunk.
_LONGEST_CHUNKED_VALUE = 4096
# A dictionary is used without further comparison if it is smaller than the plain values by this factor.
_CLEAR_RATIO = 0.25
_INDEX_NS = 4.0
# Longer values are compressed one by one without a request, if a sample shrinks by this share.
_HUGE_VALUE = 32 << 10
_HUGE_VALUE_SAVING = 0.1
_COMPRESS_EACH_MIN_BYTES = 32 << 10


def page(context: PageContext) -> EncodedPage | None:
    """Variable-width values under any levels."""
    if not is_variable(context.leaf.array.type):
        return None
    strings = strings_of(context.leaf.array, context.levels)
    values = strings.input
    zipped = (
        context.full_zip
        or values.longest > _LONGEST_CHUNKED_VALUE
        or (
            values.total_bytes >= context.profile.full_zip_bytes * context.levels.valid_slots
            and context.settings.structure != "miniblock"
        )
    )
    wanted = not context.full_zip and not context.settings.compression
    choice = _dictionary(context, strings) if wanted else None
    if choice is not None and (zipped or choice.candidate.size <= strings.nbytes * _CLEAR_RATIO):
        return mini_block(context, choice.candidate, choice.dictionary)
    if zipped:
        return _one_by_one(context, strings)
    best = best_in_chunks(context, context.table.strings, strings)
    if choice is not None and choice.candidate.cost(context.profile) < best.cost(context.profile):
        return mini_block(context, choice.candidate, choice.dictionary)
    return mini_block(context, best)


def _dictionary(context: PageContext, strings: Strings) -> DictionaryChoice | None:
    limits = dictionary_limits(context.settings, strings.input.count, strings.nbytes)
    page = None if limits is None else kernels.build_variable_dictionary(strings.input, *limits)
    if page is None:
        return None
    return dictionary_choice(context, page, variable.describe(strings.input.offset_bits), _INDEX_NS)


def _one_by_one(context: PageContext, strings: Strings) -> EncodedPage:
    values = strings.input
    encoding = variable.describe(values.offset_bits)
    coder = fsst.coder_for(context, strings)
    each = _compressed_each(context, values, 1.0 if coder is None else coder.share)
    if each is not None:
        values, level = each
        encoding = general.describe(encoding, "zstd", level)
    elif coder is not None:
        values, encoding = fsst.code(values, coder)
    encoded = kernels.encode_full_zip_variable(values, context.levels)
    return full_zip(encoded, encoding, context.levels, bits_per_offset=values.offset_bits)


def _compressed_each(
    context: PageContext, values: kernels.VariableInput, coded_share: float
) -> tuple[kernels.VariableInput, int] | None:
    """Values of a full-zip page compressed one by one, and the level: on request, or if it pays.

    Always zstd: some readers fail on LZ4 if a page has nulls.
    """
    settings = context.settings
    profitable = context.profile.byte_streams or values.longest > _HUGE_VALUE
    if values.total_bytes < _COMPRESS_EACH_MIN_BYTES or not (
        settings.general or (profitable and not settings.compression)
    ):
        return None
    level = (settings.level or 0) if settings.compression == "zstd" else 0
    saving = 0.0 if settings.general else max(_HUGE_VALUE_SAVING, 1 - coded_share)
    compressed = kernels.compress_each(values, kernels.Scheme.ZSTD, level, saving)
    return None if compressed is None else (compressed, level)
