"""Pages of packed structs: the fields of each row side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.v2_1 import encode as v2_1
from lance_engine.encodings.v2_1.encode import Buffer, EncodedPage
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.schema_tree import Field
from lance_engine.write.candidate import stored
from lance_engine.write.page_context import PageContext
from lance_engine.write.settings import Settings
from lance_engine.write.values import fixed_values, is_variable, list_layers, offset_bits, value_bytes

# Strings of a field with less than this are stored as they are.
_CODED_MIN_BYTES = 32 << 10
# Two rows must fit into a 2.1 chunk.
MAX_ROW_BYTES = 8000


def packed_page(context: PageContext, array: pa.StructArray) -> EncodedPage:
    """A packed struct column, whose rows may be null but not its fields."""
    if is_variable_packed(array.type):
        return variable_packed_page(context, _children(array, context.leaf.field, context.leaf.path))
    if context.must_zip:
        raise UnsupportedTypeError(
            "A row of this packed struct has too many list levels for any page",
            column=context.leaf.path,
            remedy="Remove the packed marker from the field metadata",
        )
    rows = packed_rows(array, context.leaf.field, context.leaf.path)
    bits = [child.type.bit_width for child in array.type]
    values = kernels.FlatValues(rows, sum(bits), 0, len(array))
    return context.mini_block(stored((values, v2_1.packed_struct(bits)), rows.nbytes, 0.0))


def packed_bits(arrow_type: pa.DataType) -> int:
    """Bits of a field of fixed width."""
    if pa.types.is_fixed_size_list(arrow_type):
        return int(arrow_type.list_size) * packed_bits(arrow_type.value_type)
    return int(arrow_type.bit_width)


def is_variable_packed(arrow_type: pa.StructType) -> bool:
    """Whether the rows of a packed struct are stored one by one, as strings and lists in them demand."""
    return any(is_variable(child.type) or pa.types.is_fixed_size_list(child.type) for child in arrow_type)


def packed_rows(array: pa.StructArray, field: Field, path: str) -> np.ndarray:
    """The bytes of the rows, shape (rows, width of a row); zeros where the struct is null."""
    fields = []
    for child, values in _children(array, field, path):
        items = values
        while pa.types.is_fixed_size_list(items.type):
            size = items.type.list_size
            items = items.values.slice(items.offset * size, len(items) * size)
            if items.null_count:
                raise UnsupportedTypeError(
                    "Lists in a packed struct cannot hold nulls before file version 2.2",
                    column=f"{path}.{child.name}",
                    remedy="Remove the packed marker from the field metadata",
                )
        fields.append(np.frombuffer(value_bytes(fixed_values(items)), np.uint8).reshape(len(array), -1))
    rows = np.concatenate(fields, axis=1)
    rows[np.asarray(array.is_null())] = 0
    return rows


def _children(array: pa.StructArray, field: Field, path: str) -> Iterator[tuple[Field, pa.Array]]:
    """The fields with their storage; UnsupportedTypeError for one that is null where its struct is not."""
    nulls = np.asarray(array.is_null())
    for number, child in enumerate(field.children):
        values = array.field(number)
        if isinstance(values, pa.ExtensionArray):
            values = values.storage
        if values.null_count and (np.asarray(values.is_null()) & ~nulls).any():
            raise UnsupportedTypeError(
                "The fields of a packed struct cannot be null",
                column=f"{path}.{child.name}",
                remedy="Remove the packed marker from the field metadata, or make the whole struct null",
            )
        yield child, values


# ---- with strings or lists (2.2) ---------------------------------------------------------------------


def variable_packed_page(
    context: PageContext, children: Iterable[tuple[Field | None, pa.Array]]
) -> EncodedPage:
    """Rows stored one by one; the fields that the children belong to may wish for an encoding."""
    fields: list[kernels.VariableInput | tuple[Buffer, int, int]] = []
    encodings: list[tuple[pb.CompressiveEncoding, int, bool]] = []
    for child, values in children:
        if is_variable(values.type):
            stored_values, encoding = _strings(context, child, values)
            fields.append(stored_values)
            encodings.append((encoding, stored_values.offset_bits, True))
        else:
            path = f"{context.leaf.path}.{child.name}" if child is not None else context.leaf.path
            content, width, offset, encoding = _fixed(values, path)
            fields.append((content, width, offset))
            encodings.append((encoding, width * 8, False))
    rows = kernels.pack_rows(fields, context.levels.slots)
    page = kernels.encode_full_zip_variable(rows, context.levels)
    encoding = v2_1.variable_packed_struct(encodings)
    return v2_1.full_zip_page(page, encoding, context.levels, bits_per_offset=rows.offset_bits)


def _strings(
    context: PageContext, field: Field | None, values: pa.Array
) -> tuple[kernels.VariableInput, pb.CompressiveEncoding]:
    """The strings of a field, coded or compressed one by one where its metadata ask for it or it pays."""
    _, offsets, data = values.buffers()
    bits = offset_bits(values.type)
    plain = kernels.VariableInput(offsets, data, bits, values.offset, len(values), None)
    encoding = v2_1.variable(bits)
    settings = Settings.of(field, field) if field is not None else Settings()
    if settings.general and plain.total_bytes >= _CODED_MIN_BYTES:
        level = (settings.level or 0) if settings.compression == "zstd" else 0
        found = kernels.compress_each(plain, kernels.Scheme.ZSTD, level, 0.0)
        return (plain, encoding) if found is None else (found, v2_1.general(encoding, "zstd", level))
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if plain.total_bytes < _CODED_MIN_BYTES or not (
        settings.compression == "fsst" or (text and not settings.compression)
    ):
        return plain, encoding
    coder = kernels.FsstCoder.train(plain)
    wanted = settings.compression == "fsst"
    if coder is None or (coder.share > 1 - context.profile.least_gain and not wanted):
        return plain, encoding
    return coder.encode(plain), v2_1.fsst(coder.symbol_table().tobytes(), encoding)


def _fixed(values: pa.Array, path: str) -> tuple[Buffer, int, int, pb.CompressiveEncoding]:
    """Bytes, width, first row and encoding of a field of fixed width, lists with validity of their items."""
    if not pa.types.is_fixed_size_list(values.type):
        fixed = fixed_values(values)
        return fixed.buffer, fixed.bits // 8, fixed.offset, v2_1.flat(fixed.bits)
    builder = kernels.LevelBuilder(len(values))
    builder.add_item(None, 0, len(values))
    levels = builder.finish()
    layers, items = list_layers(values, levels)
    if items.bits == 1 and any(bitmap is not None for _, bitmap, _ in layers):
        raise UnsupportedTypeError(
            "Lists of booleans in a packed struct cannot hold nulls",
            column=path,
            remedy="Cast the items to int8, or remove the packed marker from the field metadata",
        )
    page = kernels.encode_full_zip_fixed(items.buffer, items.bits, items.offset, len(values), layers, levels)
    rows = page.take_data()
    encoding = v2_1.fixed_size_list(
        [(dimension, bitmap is not None) for dimension, bitmap, _ in layers], items.bits
    )
    return rows, len(rows) // len(values), 0, encoding
