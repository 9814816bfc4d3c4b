"""Chooses how a page is stored and encodes it: a leaf column over a range of rows becomes an `EncodedPage`.

The choice is made per page from its own values. Order of trial: nothing but nulls; values too large for
chunks; a dictionary; then, for values as wide as an integer, whichever of run lengths, bit-packing and plain
values is smallest. General compression is used where the field's metadata ask for it, and for huge values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import Buffer, Dictionary, EncodedPage
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.types import Field
from lance_engine.write.leaves import Leaf, leaves_of
from lance_engine.write.values import (
    INTEGER_BITS,
    FixedValues,
    ListLayer,
    byte_entropy,
    fixed_values,
    is_variable,
    list_layers,
    offset_bits,
    value_bytes,
    variable_values,
    widen_bits,
    without_nulls,
)

# Values from this mean size on are stored whole, one by one (format 2.1, full-zip layout).
FULL_ZIP_BYTES = 256
# No single value in a chunk may be longer: two of them must fit into the 32 KiB of a 2.1 chunk.
_LONGEST_CHUNKED_VALUE = 4096
# Bits of a list of booleans: eight rows with two layers of validity must fit into that as well.
_WIDEST_CHUNKED_ROW = 10_000
_DICTIONARY_MIN_VALUES = 100
_DICTIONARY_MAX_ITEMS = 100_000
_DICTIONARY_MAX_SHARE = 0.8
_INDEX_BITS = 32
_COMPRESSION_KEY = "lance-encoding:compression"
_LEVEL_KEY = "lance-encoding:compression-level"
_STRUCTURAL_KEY = "lance-encoding:structural-encoding"
_BYTE_SPLIT_KEY = "lance-encoding:bss"
_GENERAL_SCHEMES = ("lz4", "zstd")
_SPLIT_ENTROPY = 4.0
_FSST_MIN_LENGTH = 5
_FSST_MIN_BYTES = 32 << 10
# Values longer than this are compressed without being asked, if a sample shrinks by at least the share below.
_HUGE_VALUE = 32 << 10
_HUGE_VALUE_SAVING = 0.1
_COMPRESS_MIN_BYTES = 32 << 10


def encode_column(
    array: pa.Array, field: Field, version: tuple[int, int], leaves: Sequence[Leaf] | None = None
) -> list[list[EncodedPage]]:
    """Encode consecutive rows of a top-level column: for each leaf column in order, its pages.

    A leaf usually gets one page; long runs of empty and null lists force more. `leaves` are those of the
    array where the caller has them already.
    """
    leaves = leaves_of(array, field) if leaves is None else leaves
    return [_leaf_pages(array, field, number, leaf, version) for number, leaf in enumerate(leaves)]


def _leaf_pages(
    array: pa.Array, field: Field, number: int, leaf: Leaf, version: tuple[int, int]
) -> list[EncodedPage]:
    levels = leaf.levels
    # Chunks hold at least two values and all entries between them, and the levels of a chunk are limited: the
    # page is cut until no run without values comes near that limit. A single row that still does is zipped.
    if levels.valid_slots == 0 or levels.longest_invisible_run * 4 <= levels.budget:
        return [_encode_leaf(leaf, version)]
    if len(array) == 1:
        return [_encode_leaf(leaf, version, must_zip=True)]
    half = len(array) // 2
    pages: list[EncodedPage] = []
    for part in (array.slice(0, half), array.slice(half)):
        pages += _leaf_pages(part, field, number, leaves_of(part, field)[number], version)
    return pages


def _encode_leaf(leaf: Leaf, version: tuple[int, int], must_zip: bool = False) -> EncodedPage:
    array, levels, types = leaf.array, leaf.levels, pa.types
    if types.is_struct(array.type):
        return _encode_empty_struct(leaf)
    if levels.valid_slots == 0:
        return v2_1.all_null_page(levels)
    choice = _Choice(leaf, version, must_zip)
    if types.is_dictionary(array.type):
        return choice.dictionary()
    if types.is_fixed_size_list(array.type):
        return choice.fixed_size_list()
    if is_variable(array.type):
        return choice.variable()
    return choice.fixed(fixed_values(array))


def _encode_empty_struct(leaf: Leaf) -> EncodedPage:
    if leaf.levels.max_def or leaf.levels.max_rep:
        raise UnsupportedTypeError(
            "A struct without fields can hold no nulls and cannot stand inside lists",
            column=leaf.path,
            remedy="Leave the column out",
        )
    return v2_1.empty_struct_page(leaf.levels.rows)


class _Choice:
    """The ways one leaf page can be stored."""

    def __init__(self, leaf: Leaf, version: tuple[int, int], must_zip: bool) -> None:
        self._leaf = leaf
        self._array: pa.Array = leaf.array
        self._levels = leaf.levels
        self._must_zip = must_zip
        self._large_chunks = version >= (2, 2)
        metadata = leaf.field.metadata
        self._full_zip = must_zip or metadata.get(_STRUCTURAL_KEY) == "fullzip"
        self._compression = metadata.get(_COMPRESSION_KEY, "").lower()
        level = metadata.get(_LEVEL_KEY, "")
        self._level = int(level) if level.lstrip("-").isdigit() else None
        # 64-bit dictionaries came with 2.2; narrower values never pay.
        self._dictionary_bits = (64, 128) if version >= (2, 2) else (128,)

    # ---- fixed width -----------------------------------------------------------------------------

    def fixed(self, values: FixedValues) -> EncodedPage:
        levels = self._levels
        if self._full_zip or values.bits >= FULL_ZIP_BYTES * 8:
            return self._fixed_full_zip(values if values.bits > 1 else widen_bits(values))
        values = without_nulls(values, levels)
        if values.bits in self._dictionary_bits:
            page = self._fixed_dictionary(values)
            if page is not None:
                return page
        encoded, encoding = self._compact(values)
        return self._mini_block(encoded, encoding)

    def _fixed_full_zip(self, values: FixedValues) -> EncodedPage:
        levels, encoding = self._levels, v2_1.flat(values.bits)
        if levels.max_rep == 0 and levels.max_def == 0:
            return v2_1.plain_full_zip_page(value_bytes(values), encoding, levels, values.bits)
        page = kernels.encode_full_zip_fixed(
            values.buffer, values.bits, values.offset, values.count, [], levels
        )
        return v2_1.full_zip_page(page, encoding, levels, bits_per_value=values.bits)

    def _fixed_dictionary(self, values: FixedValues) -> EncodedPage | None:
        size = values.count * values.bits // 8
        limits = _dictionary_limits(values.count, size)
        if limits is None:
            return None
        found = kernels.build_fixed_dictionary(
            values.buffer, values.bits, values.offset, values.count, *limits
        )
        if found is None:
            return None
        return self._with_dictionary(found, v2_1.flat(values.bits))

    def _compact(self, values: FixedValues) -> tuple[kernels.MiniBlockValues, pb.CompressiveEncoding]:
        """The smallest of run lengths, bit-packing and plain values."""
        arguments = (values.buffer, values.bits, values.offset, values.count)
        if values.bits in INTEGER_BITS and self._compression != "none":
            if self._splits_bytes(values):
                return kernels.ByteStreamSplitValues(*arguments), v2_1.byte_stream_split(values.bits)
            packed, runs = kernels.integer_statistics(*arguments)
            plain = values.count * values.bits // 8
            if runs < plain and runs <= packed:
                return kernels.RunLengthValues(*arguments), v2_1.run_length(values.bits)
            if packed < plain:
                return kernels.BitpackedValues(*arguments), v2_1.inline_bitpacking(values.bits)
        return kernels.FlatValues(*arguments), v2_1.flat(values.bits)

    def _splits_bytes(self, values: FixedValues) -> bool:
        """Whether to split values into byte streams: only to prepare compression, where bytes look alike."""
        wanted = self._leaf.field.metadata.get(_BYTE_SPLIT_KEY, "auto")
        if self._compression not in _GENERAL_SCHEMES or values.bits not in (32, 64) or wanted == "off":
            return False
        return wanted == "on" or byte_entropy(values) < _SPLIT_ENTROPY

    # ---- lists of fixed size ---------------------------------------------------------------------

    def fixed_size_list(self) -> EncodedPage:
        levels = self._levels
        layers, items = list_layers(self._array, levels)
        per_row = math.prod(dimension for dimension, _, _ in layers)
        described = [(dimension, bitmap is not None) for dimension, bitmap, _ in layers]
        encoding = v2_1.fixed_size_list(described, items.bits)
        row_bits = per_row * items.bits
        # Full-zip rows are whole bytes, and readers exist that fail on those with bits and their validity.
        nulls = any(has_validity for _, has_validity in described)
        can_zip = row_bits % 8 == 0 and not (items.bits == 1 and nulls)
        if can_zip and (self._full_zip or row_bits >= FULL_ZIP_BYTES * 8):
            return self._list_full_zip(layers, items, encoding)
        if self._must_zip or row_bits > _WIDEST_CHUNKED_ROW:
            raise UnsupportedTypeError(
                f"A fixed-size list of {per_row} booleans is too wide for this page",
                column=self._leaf.path,
                remedy="Cast the items to int8",
            )
        rows = levels.slots
        values = kernels.FixedSizeListValues(layers, items.buffer, items.bits, items.offset, rows)
        return self._mini_block(values, encoding, compress=False)

    def _list_full_zip(
        self, layers: list[ListLayer], items: FixedValues, encoding: pb.CompressiveEncoding
    ) -> EncodedPage:
        levels = self._levels
        bits, validity_bytes, per_row = items.bits, 0, 1
        for dimension, bitmap, _ in layers:
            per_row *= dimension
            validity_bytes += (per_row + 7) // 8 if bitmap is not None else 0
        bits = per_row * items.bits + validity_bytes * 8
        if levels.max_rep == 0 and levels.max_def == 0 and validity_bytes == 0 and items.bits % 8 == 0:
            return v2_1.plain_full_zip_page(value_bytes(items), encoding, levels, bits)
        page = kernels.encode_full_zip_fixed(
            items.buffer, items.bits, items.offset, levels.slots, layers, levels
        )
        return v2_1.full_zip_page(page, encoding, levels, bits_per_value=bits)

    # ---- variable width --------------------------------------------------------------------------

    def variable(self) -> EncodedPage:
        values, levels = variable_values(self._array, self._levels), self._levels
        encoding = v2_1.variable(values.offset_bits)
        zipped = (
            self._full_zip
            or values.total_bytes >= FULL_ZIP_BYTES * levels.valid_slots
            or values.longest > _LONGEST_CHUNKED_VALUE
        )
        if not self._full_zip:
            page = self._variable_dictionary(values)
            if page is not None:
                return page
        compressed = self._compressed_each(values) if zipped else None
        if compressed is not None:
            values, level = compressed
            encoding = v2_1.general(encoding, "zstd", level)
        else:
            coded = self._fsst(values)
            if coded is not None:
                encoding = v2_1.fsst(coded.take_symbol_table().tobytes(), encoding)
                values = coded.values
        if zipped:
            zipped_page = kernels.encode_full_zip_variable(values, levels)
            return v2_1.full_zip_page(zipped_page, encoding, levels, bits_per_offset=values.offset_bits)
        return self._mini_block(kernels.VariableValues(values), encoding)

    def _compressed_each(self, values: kernels.VariableInput) -> tuple[kernels.VariableInput, int] | None:
        """Values of a full-zip page compressed one by one, and the level: on request, or if they are huge.

        Always zstd: readers exist that fail on LZ4 where a page has nulls.
        """
        wanted = self._compression in _GENERAL_SCHEMES
        huge = values.longest > _HUGE_VALUE and not self._compression
        if values.total_bytes < _COMPRESS_MIN_BYTES or not (wanted or huge):
            return None
        level = (self._level or 0) if self._compression == "zstd" else 0
        found = kernels.compress_each(
            values, kernels.Scheme.ZSTD, level, 0.0 if wanted else _HUGE_VALUE_SAVING
        )
        return None if found is None else (found, level)

    def _fsst(self, values: kernels.VariableInput) -> kernels.FsstPage | None:
        """Text of some size, unless the field's metadata ask for something else."""
        text = pa.types.is_string(self._array.type) or pa.types.is_large_string(self._array.type)
        wanted = self._compression == "fsst" or (text and not self._compression)
        large = values.longest >= _FSST_MIN_LENGTH and values.total_bytes >= _FSST_MIN_BYTES
        return kernels.encode_fsst(values) if wanted and large else None

    def _variable_dictionary(self, values: kernels.VariableInput) -> EncodedPage | None:
        size = values.total_bytes + (values.count + 1) * values.offset_bits // 8
        limits = _dictionary_limits(values.count, size)
        found = None if limits is None else kernels.build_variable_dictionary(values, *limits)
        return None if found is None else self._with_dictionary(found, v2_1.variable(values.offset_bits))

    # ---- dictionaries ----------------------------------------------------------------------------

    def _with_dictionary(
        self, found: kernels.DictionaryPage, encoding: pb.CompressiveEncoding
    ) -> EncodedPage:
        dictionary = Dictionary(found.take_items(), encoding, found.num_items)
        indices = FixedValues(found.take_indices(), _INDEX_BITS, 0, self._levels.slots)
        return self._mini_block(*self._compact(indices), dictionary=dictionary)

    def dictionary(self) -> EncodedPage:
        """An Arrow dictionary array, stored with the dictionary it has."""
        if self._must_zip:
            raise UnsupportedTypeError(
                "A row of this dictionary column has too many list levels for any page",
                column=self._leaf.path,
                remedy="Cast the column to its value type",
            )
        array = self._array
        if array.dictionary.null_count:
            # Items cannot be null: re-encoding moves the nulls into the indices.
            array = array.dictionary_decode().dictionary_encode().cast(array.type)
        items = array.dictionary
        keys = without_nulls(fixed_values(array.indices), self._levels)
        if is_variable(items.type):
            bits = offset_bits(items.type)
            encoding = v2_1.variable(bits)
            content: Buffer = v2_1.variable_block(
                (memoryview(item.as_buffer()).tobytes() for item in items), bits
            )
        else:
            fixed = fixed_values(items)
            content, encoding = value_bytes(fixed), v2_1.flat(fixed.bits)
        dictionary = Dictionary(content, encoding, len(items))
        return self._mini_block(*self._compact(keys), dictionary=dictionary)

    # ---- chunks ----------------------------------------------------------------------------------

    def _mini_block(
        self,
        values: kernels.MiniBlockValues,
        encoding: pb.CompressiveEncoding,
        *,
        dictionary: Dictionary | None = None,
        compress: bool = True,
    ) -> EncodedPage:
        large, levels = self._large_chunks, self._levels
        plain = v2_1.mini_block_page(values, encoding, levels, large_chunks=large, dictionary=dictionary)
        if not compress or self._compression not in _GENERAL_SCHEMES:
            return plain
        scheme = kernels.Scheme.ZSTD if self._compression == "zstd" else kernels.Scheme.LZ4
        wrapped = kernels.CompressedValues(values, scheme, self._level or 0)
        wrapping = v2_1.general(encoding, self._compression, self._level)
        packed = v2_1.mini_block_page(wrapped, wrapping, levels, large_chunks=large, dictionary=dictionary)
        return packed if _data_size(packed) < _data_size(plain) else plain


def _dictionary_limits(count: int, size: int) -> tuple[int, int] | None:
    """The most items and bytes (dictionary and indices) that are worth it; None for tiny pages."""
    if count < _DICTIONARY_MIN_VALUES:
        return None
    return min(count // 2, _DICTIONARY_MAX_ITEMS), int(size * _DICTIONARY_MAX_SHARE)


def _data_size(page: EncodedPage) -> int:
    return sum(int(memoryview(buffer).nbytes) for buffer in page.buffers)
