"""Pages of strings and binary values: plain, coded with symbols, compressed, or through a dictionary."""

from __future__ import annotations

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import EncodedPage
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.write.candidate import Candidate, Encoded, cheapest, compressed, stored
from lance_engine.write.dictionary import DictionaryChoice, dictionary_choice, dictionary_limits
from lance_engine.write.page_context import PageContext
from lance_engine.write.values import variable_values

# No single value in a chunk may be longer: two of them must fit into the 32 KiB of a 2.1 chunk.
_LONGEST_CHUNKED_VALUE = 4096
# What a chunk of the wish of a field may hold at most.
_MAX_CHUNK_BYTES = 16 << 10
# A dictionary this much smaller than the plain values is taken without looking further.
_CLEAR_RATIO = 0.25
_FSST_MIN_LENGTH = 5
_FSST_MIN_BYTES = 32 << 10
_FSST_NS, _FSST_NS_PER_BYTE = 3.0, 1.2
_VALUE_NS, _INDEX_NS = 2.0, 4.0
# Values longer than this are compressed one by one without being asked, if a sample shrinks by this share.
_HUGE_VALUE = 32 << 10
_HUGE_VALUE_SAVING = 0.1
_COMPRESS_EACH_MIN_BYTES = 32 << 10


def variable_page(context: PageContext, array: pa.Array) -> EncodedPage:
    """Variable-width values under any levels."""
    values = variable_values(array, context.levels)
    zipped = (
        context.full_zip
        or values.longest > _LONGEST_CHUNKED_VALUE
        or (
            values.total_bytes >= context.profile.full_zip_bytes * context.levels.valid_slots
            and context.settings.structure != "miniblock"
        )
    )
    size = values.total_bytes + (values.count + 1) * values.offset_bits // 8
    choice = None if context.full_zip or context.settings.compression else _dictionary(context, values, size)
    if choice is not None and (zipped or choice.candidate.size <= size * _CLEAR_RATIO):
        return context.mini_block(choice.candidate, choice.dictionary)
    if zipped:
        return _full_zip(context, array, values)
    best = _chunked(context, array, values, size)
    if choice is not None and choice.candidate.cost(context.profile) < best.cost(context.profile):
        return context.mini_block(choice.candidate, choice.dictionary)
    return context.mini_block(best)


def _dictionary(context: PageContext, values: kernels.VariableInput, size: int) -> DictionaryChoice | None:
    limits = dictionary_limits(context.settings, values.count, size)
    found = None if limits is None else kernels.build_variable_dictionary(values, *limits)
    if found is None:
        return None
    return dictionary_choice(context, found, v2_1.variable(values.offset_bits), _INDEX_NS)


def _chunked(context: PageContext, array: pa.Array, values: kernels.VariableInput, size: int) -> Candidate:
    """The cheapest encoding in chunks without a dictionary."""
    settings, profile = context.settings, context.profile
    encoding = v2_1.variable(values.offset_bits)
    wish = min(settings.chunk_bytes, _MAX_CHUNK_BYTES) if settings.chunk_bytes else None
    plain: Encoded = (_in_chunks(values, wish), encoding)
    candidates = [stored(plain, size, _VALUE_NS)]
    if settings.compression == "none":
        return candidates[0]
    coded = _coded(context, array, values, wish)
    if coded is not None:
        if settings.compression == "fsst":
            return coded
        candidates.append(coded)
    wide = wish or (profile.chunk_bytes if context.wide_chunks else None)
    wrapped = [
        compressed(_in_chunks(values, wide), encoding, scheme, settings.level, candidates[0])
        for scheme in context.schemes(size)
    ]
    if settings.general:
        # Asked for: decoding time does not count.
        return min([candidates[0], *wrapped], key=lambda candidate: candidate.size)
    return cheapest(candidates, wrapped, profile)


def _in_chunks(values: kernels.VariableInput, chunk_bytes: int | None) -> kernels.VariableValues:
    return kernels.VariableValues(values, chunk_bytes) if chunk_bytes else kernels.VariableValues(values)


def _coded(
    context: PageContext, array: pa.Array, values: kernels.VariableInput, chunk_bytes: int | None
) -> Candidate | None:
    """Values coded with a symbol table; the size comes from some of them."""
    coder = _coder(context, array, values)
    if coder is None:
        return None
    coded_bytes = values.total_bytes * coder.share
    size = int(coded_bytes) + (values.count + 1) * values.offset_bits // 8

    def build() -> Encoded:
        coded, encoding = _code(values, coder)
        return _in_chunks(coded, chunk_bytes), encoding

    return Candidate(size, values.count * _FSST_NS + coded_bytes * _FSST_NS_PER_BYTE, build)


def _coder(context: PageContext, array: pa.Array, values: kernels.VariableInput) -> kernels.FsstCoder | None:
    """Symbols for the values; None where they are unwanted, useless or cannot be found in so little."""
    text = pa.types.is_string(array.type) or pa.types.is_large_string(array.type)
    wanted = context.settings.compression == "fsst" or (text and not context.settings.compression)
    if not wanted or values.longest < _FSST_MIN_LENGTH or values.total_bytes < _FSST_MIN_BYTES:
        return None
    return kernels.FsstCoder.train(values)


def _code(
    values: kernels.VariableInput, coder: kernels.FsstCoder
) -> tuple[kernels.VariableInput, pb.CompressiveEncoding]:
    encoding = v2_1.variable(values.offset_bits)
    return coder.encode(values), v2_1.fsst(coder.symbol_table().tobytes(), encoding)


# ---- one by one --------------------------------------------------------------------------------------


def _full_zip(context: PageContext, array: pa.Array, values: kernels.VariableInput) -> EncodedPage:
    encoding = v2_1.variable(values.offset_bits)
    coder = _coder(context, array, values)
    each = _compressed_each(context, values, 1.0 if coder is None else coder.share)
    if each is not None:
        values, level = each
        encoding = v2_1.general(encoding, "zstd", level)
    elif coder is not None:
        values, encoding = _code(values, coder)
    page = kernels.encode_full_zip_variable(values, context.levels)
    return v2_1.full_zip_page(page, encoding, context.levels, bits_per_offset=values.offset_bits)


def _compressed_each(
    context: PageContext, values: kernels.VariableInput, coded_share: float
) -> tuple[kernels.VariableInput, int] | None:
    """Values of a full-zip page compressed one by one, and the level: on request, or where it pays.

    Always zstd: readers exist that fail on LZ4 where a page has nulls.
    """
    settings = context.settings
    profitable = context.profile.byte_streams or values.longest > _HUGE_VALUE
    if values.total_bytes < _COMPRESS_EACH_MIN_BYTES or not (
        settings.general or (profitable and not settings.compression)
    ):
        return None
    level = (settings.level or 0) if settings.compression == "zstd" else 0
    saving = 0.0 if settings.general else max(_HUGE_VALUE_SAVING, 1 - coded_share)
    found = kernels.compress_each(values, kernels.Scheme.ZSTD, level, saving)
    return None if found is None else (found, level)
