"""The type of a leaf column in the kernels' terms."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from lance_engine.errors import UnsupportedTypeError


class LeafShape(NamedTuple):
    """Memory layout of the values of one leaf.

    `kind` is one of ``null``, ``bits``, ``fixed``, ``variable32``, ``variable64``; `width` the bytes of one
    item where `kind` is ``fixed``, else 0; `dims` the sizes of nested fixed-size lists, outermost first.
    """

    kind: str
    width: int
    dims: tuple[int, ...] = ()


def leaf_shape(arrow_type: pa.DataType) -> LeafShape:
    """The shape of a leaf of this Arrow type; of its values for a dictionary type."""
    dims: list[int] = []
    while pa.types.is_fixed_size_list(arrow_type):
        dims.append(arrow_type.list_size)
        arrow_type = arrow_type.value_type
    if pa.types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    if pa.types.is_null(arrow_type):
        return LeafShape("null", 0, tuple(dims))
    if pa.types.is_boolean(arrow_type):
        return LeafShape("bits", 0, tuple(dims))
    if not dims and (pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type)):
        return LeafShape("variable32", 0)
    if not dims and (pa.types.is_large_string(arrow_type) or pa.types.is_large_binary(arrow_type)):
        return LeafShape("variable64", 0)
    if pa.types.is_primitive(arrow_type) or pa.types.is_decimal(arrow_type) or _is_fixed_binary(arrow_type):
        return LeafShape("fixed", arrow_type.bit_width // 8, tuple(dims))
    raise UnsupportedTypeError(f"A leaf column cannot store {arrow_type}")


def _is_fixed_binary(arrow_type: pa.DataType) -> bool:
    return bool(pa.types.is_fixed_size_binary(arrow_type))
