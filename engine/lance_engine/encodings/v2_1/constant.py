"""Constant layout: every value null, or in 2.2 every value the same (format 2.1, constant)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine import kernels
from lance_engine.encodings.page import Buffer, EncodedPage
from lance_engine.encodings.v2_1 import flat, general
from lance_engine.encodings.v2_1.context import PageContext
from lance_engine.encodings.v2_1.layers import LEVEL_BITS, layers_of
from lance_engine.encodings.values import fixed_values, is_variable, offset_bits, value_bytes, without_nulls
from lance_engine.errors import UnsupportedTypeError
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.kernels import Levels

# Minimum size of levels for compression, and maximum size of a constant in the layout message.
_COMPRESSED_LEVELS = 4096
_INLINE_BYTES = 32


def page(context: PageContext) -> EncodedPage | None:
    """A struct without fields, only nulls, or (2.2) a single value."""
    array, levels, types = context.leaf.array, context.levels, pa.types
    if types.is_struct(array.type) and not context.leaf.field.is_packed:
        return _empty_struct(context)
    if levels.valid_slots == 0:
        return _all_null(levels, compress=context.version >= (2, 2))
    if types.is_struct(array.type) or types.is_dictionary(array.type) or types.is_fixed_size_list(array.type):
        return None
    if context.version < (2, 2) or context.settings.structure:
        return None
    value = _only_value(array, levels)
    return None if value is None else _constant(value, levels)


def _empty_struct(context: PageContext) -> EncodedPage:
    """Rows of a struct without children, which store nothing."""
    levels = context.levels
    if levels.max_def or levels.max_rep:
        raise UnsupportedTypeError(
            "A struct without fields cannot be null and cannot be inside a list",
            column=context.leaf.path,
            remedy="Drop the column",
        )
    layout = pb.ConstantLayout(layers=[pb.REPDEF_NULLABLE_ITEM])
    return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), ())


def _all_null(levels: Levels, *, compress: bool) -> EncodedPage:
    """A page without values: nested nulls and empty lists are stored as levels.

    `compress` compresses many levels, which format 2.2 allows and 2.1 does not.
    """
    layout = pb.ConstantLayout(layers=layers_of(levels))
    if list(levels.layers) == [pb.REPDEF_NULLABLE_ITEM]:
        return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), ())
    rep, def_ = levels.rep, levels.def_
    if compress and len(rep) >= _COMPRESSED_LEVELS:
        layout.rep_compression.CopyFrom(general.describe(flat.describe(LEVEL_BITS), "zstd", 0))
        layout.num_rep_values = levels.entries
        rep = kernels.compress_block(rep, kernels.Scheme.ZSTD, 0)
    if compress and len(def_) >= _COMPRESSED_LEVELS:
        layout.def_compression.CopyFrom(general.describe(flat.describe(LEVEL_BITS), "zstd", 0))
        layout.num_def_values = levels.entries
        def_ = kernels.compress_block(def_, kernels.Scheme.ZSTD, 0)
    return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), (rep, def_))


def _constant(value: Sequence[bytes], levels: Levels) -> EncodedPage:
    """A page whose values all equal one; `value` are its Arrow buffers."""
    layout = pb.ConstantLayout(layers=layers_of(levels))
    buffers: list[Buffer] = []
    if len(value) == 1 and len(value[0]) <= _INLINE_BYTES:
        layout.inline_value = value[0]
    else:
        sizes = np.array([len(value), *map(len, value)], "<u4")
        buffers.append(sizes.tobytes() + b"".join(value))
    if levels.max_rep or levels.max_def:
        buffers += [levels.rep, levels.def_]
    return EncodedPage(levels.rows, pb.PageLayout(constant_layout=layout), tuple(buffers))


def _only_value(array: pa.Array, levels: Levels) -> list[bytes] | None:
    """The Arrow buffers of the only non-null value; None if there are several.

    `array` contains at least one value, of fixed or variable width.
    """
    if pa.types.is_boolean(array.type) or is_variable(array.type):
        return _of_any(array, levels)
    values = without_nulls(fixed_values(array), levels)
    rows = np.frombuffer(value_bytes(values), np.uint8).reshape(values.count, -1)
    first = rows[0]
    for part in (rows[len(rows) // 2], rows[-1], rows):
        if not (part == first).all():
            return None
    return [first.tobytes()]


def _of_any(array: pa.Array, levels: Levels) -> list[bytes] | None:
    if levels.valid_slots < levels.slots:
        array = array.filter(pa.array(np.asarray(levels.null_slots()) == 0))
    first = array[0]
    if array[len(array) // 2] != first or array[-1] != first or not pc.all(pc.equal(array, first)).as_py():
        return None
    if pa.types.is_boolean(array.type):
        return [bytes([first.as_py()])]
    content = memoryview(first.as_buffer()).tobytes()
    ends = np.array([0, len(content)], f"<i{offset_bits(array.type) // 8}")
    return [ends.tobytes(), content]
