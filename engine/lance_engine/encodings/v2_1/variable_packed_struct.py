"""Variable packed struct: the fields of each row together, some after their length (format 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lance_engine import kernels
from lance_engine.encodings.packed_rows import packed_children
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.settings import Settings
from lance_engine.encodings.v2_1 import fixed_size_list, flat, fsst, general, variable
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.full_zip import full_zip
from lance_engine.encodings.values import fixed_values, is_variable, list_layers, strings_of
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.schema_tree import Field

# Strings of smaller fields are stored unchanged.
_CODED_MIN_BYTES = 32 << 10


def describe(
    fields: Sequence[tuple[pb.CompressiveEncoding, int, bool]],
) -> pb.CompressiveEncoding:
    """Rows of fields: (encoding of one value, its bits or those of its length, has a length)."""
    encodings = [
        pb.VariablePackedStruct.FieldEncoding(value=value, bits_per_length=bits)
        if has_length
        else pb.VariablePackedStruct.FieldEncoding(value=value, bits_per_value=bits)
        for value, bits, has_length in fields
    ]
    return pb.CompressiveEncoding(variable_packed_struct=pb.VariablePackedStruct(fields=encodings))


def page(context: PageContext) -> EncodedPage | None:
    """A packed struct with strings or lists among its fields, whose rows are stored one by one."""
    array = context.leaf.array
    if not pa.types.is_struct(array.type):
        return None
    return rows_page(context, packed_children(array, context.leaf.field, context.leaf.path))


def rows_page(context: PageContext, children: Iterable[tuple[Field | None, pa.Array]]) -> EncodedPage:
    """Rows stored one by one; the fields of the children may request an encoding."""
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
    encoding = describe(encodings)
    return full_zip(page, encoding, context.levels, bits_per_offset=rows.offset_bits)


def _strings(
    context: PageContext, field: Field | None, values: pa.Array
) -> tuple[kernels.VariableInput, pb.CompressiveEncoding]:
    """The strings of a field, encoded or compressed one by one if requested in its metadata or if it pays."""
    strings = strings_of(values, None)
    plain = strings.input
    encoding = variable.describe(plain.offset_bits)
    settings = Settings.of(field, field) if field is not None else Settings()
    if settings.general and plain.total_bytes >= _CODED_MIN_BYTES:
        level = (settings.level or 0) if settings.compression == "zstd" else 0
        compressed = kernels.compress_each(plain, kernels.Scheme.ZSTD, level, 0.0)
        return (
            (plain, encoding)
            if compressed is None
            else (compressed, general.describe(encoding, "zstd", level))
        )
    if plain.total_bytes < _CODED_MIN_BYTES or not (
        settings.compression == "fsst" or (strings.is_text and not settings.compression)
    ):
        return plain, encoding
    coder = kernels.FsstCoder.train(plain)
    wanted = settings.compression == "fsst"
    if coder is None or (coder.share > 1 - context.profile.least_gain and not wanted):
        return plain, encoding
    return fsst.code(plain, coder)


def _fixed(values: pa.Array, path: str) -> tuple[Buffer, int, int, pb.CompressiveEncoding]:
    """Bytes, width, first row and encoding of a field of fixed width, lists with validity of their items."""
    if not pa.types.is_fixed_size_list(values.type):
        fixed = fixed_values(values)
        return fixed.buffer, fixed.bits // 8, fixed.offset, flat.describe(fixed.bits)
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
    encoding = fixed_size_list.describe(
        [(dimension, bitmap is not None) for dimension, bitmap, _ in layers], items.bits
    )
    return rows, len(rows) // len(values), 0, encoding
