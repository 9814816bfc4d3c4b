"""Arrow types as filters see them: values without their encoding, and how two types are compared."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.types as at

from lance_engine.logical_types import EXTENSION_NAME, OPAQUE_EXTENSION, with_extensions

#: Steps per second of the Arrow time units.
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
UNITS = tuple(PER_SECOND)
#: Days in Arrow's date64 are counted in milliseconds.
MILLISECONDS_PER_DAY = 86_400_000

_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type in which values of `kind` are compared: no dictionary, run-end, extension or view encoding."""
    if at.is_dictionary(kind) or at.is_run_end_encoded(kind):
        return value_type(kind.value_type)
    if isinstance(kind, pa.OpaqueType):  # what is stored has neither the equality nor the order of the values
        return kind
    if isinstance(kind, pa.BaseExtensionType):
        return value_type(kind.storage_type)
    if at.is_string_view(kind):
        return pa.string()
    if at.is_binary_view(kind) or at.is_fixed_size_binary(kind):
        return pa.binary()
    return kind


#: Extension types that decide how values are compared, or that filters cannot compare.
_COMPARED_AS: Final = {b"arrow.uuid", b"geoarrow.wkb", OPAQUE_EXTENSION.encode()}


def filtered_type(field: pa.Field) -> pa.DataType:
    """The type of a column in filters.

    Values of types that only another system can compare have an opaque type.
    """
    name = (field.metadata or {}).get(EXTENSION_NAME.encode())
    if name == b"geoarrow.wkb":
        return pa.opaque(field.type, "geometry", "")
    return with_extensions(pa.schema([field])).field(0).type if _is_compared(field) else field.type


def _is_compared(field: pa.Field) -> bool:
    name = (field.metadata or {}).get(EXTENSION_NAME.encode())
    inner = (field.type.field(place) for place in range(field.type.num_fields))
    return name in _COMPARED_AS or any(map(_is_compared, inner))


def is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind))


def is_bytes(kind: pa.DataType) -> bool:
    return bool(at.is_binary(kind) or at.is_large_binary(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether values have items that are counted from 1."""
    return bool(at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind))


def is_nested(kind: pa.DataType) -> bool:
    """Whether values are lists or structs, which `lance_engine.expr.nested` compares."""
    return is_list(kind) or bool(at.is_struct(kind))


def is_zoned(kind: pa.DataType) -> bool:
    return bool(at.is_timestamp(kind)) and kind.tz is not None


def has_zone(kind: pa.DataType) -> bool:
    """Whether values are, or contain, timestamps with a time zone."""
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return is_zoned(kind) or any(map(has_zone, inner))


def is_comparable(kind: pa.DataType) -> bool:
    """Whether values of this (value) type have an order that filters can use."""
    return bool(
        at.is_boolean(kind)
        or (is_number(kind) and not (at.is_decimal(kind) and kind.scale < 0))  # Arrow does not compare these
        or is_text(kind)
        or is_bytes(kind)
        or at.is_date(kind)
        or at.is_timestamp(kind)
        or at.is_time(kind)
        or at.is_duration(kind)
    )


def integer_limits(kind: pa.DataType) -> tuple[int, int]:
    """The minimum and maximum value of an integer type."""
    bits = kind.bit_width
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if at.is_signed_integer(kind) else (0, (1 << bits) - 1)


def decimal_for_integer(kind: pa.DataType) -> pa.DataType:
    """The decimal type that holds every value of an integer type."""
    return pa.decimal128(_INTEGER_DIGITS[kind.bit_width], 0)


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """decimal128 where the precision allows it, else decimal256."""
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(min(precision, 76), scale)


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The type in which values of two (value) types are compared; None if they cannot be compared.

    A decimal or an integer is compared with a floating point number as that floating point type, as in
    SQL engines; a timestamp without a time zone is local time where it is compared with one that has a zone.
    """
    if is_list(left) and is_list(right):
        item = common_type(value_type(left.value_type), value_type(right.value_type))
        if item is None or left == right:
            return None if item is None else left
        same_size = at.is_fixed_size_list(left) and left.id == right.id and left.list_size == right.list_size
        return list_type(left, item) if same_size else pa.large_list(item)
    if at.is_struct(left) and at.is_struct(right):
        return _common_struct(left, right)
    if left == right:
        return left if is_comparable(left) or at.is_null(left) else None
    if at.is_null(left) or at.is_null(right):
        return right if at.is_null(left) else left
    for one, other in ((left, right), (right, left)):
        if is_number(one) and is_number(other):
            return _common_number(left, right)
        if is_text(one) and is_text(other):
            return pa.large_string()
        if is_bytes(one) and is_bytes(other):
            return pa.large_binary()
        if at.is_date(one) and at.is_date(other):
            return pa.date32()
        if at.is_timestamp(one) and at.is_date(other):
            return one
        if at.is_timestamp(one) and at.is_timestamp(other):
            return pa.timestamp(_finer(left.unit, right.unit), left.tz or right.tz)
        if at.is_time(one) and at.is_time(other):
            unit = _finer(left.unit, right.unit)
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
        if at.is_duration(one) and at.is_duration(other):
            return pa.duration(_finer(left.unit, right.unit))
    return None


def list_type(kind: pa.DataType, item: pa.DataType) -> pa.DataType:
    """The list type with other items."""
    if at.is_fixed_size_list(kind):
        return pa.list_(item, kind.list_size)
    return pa.large_list(item) if at.is_large_list(kind) else pa.list_(item)


def _common_struct(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Fields in the order of the left side; None unless both have fields of the same names."""
    names = [field.name for field in left]
    if len(set(names)) != len(names) or sorted(names) != sorted(field.name for field in right):
        return None
    kinds = [common_type(*(value_type(side.field(name).type) for side in (left, right))) for name in names]
    fields = [pa.field(name, kind) for name, kind in zip(names, kinds, strict=True) if kind is not None]
    return pa.struct(fields) if len(fields) == len(names) else None


def _finer(left: str, right: str) -> str:
    return max(left, right, key=UNITS.index)


def _common_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if at.is_floating(left) and at.is_floating(right):
        return max(left, right, key=lambda kind: int(kind.bit_width))
    if at.is_floating(left) or at.is_floating(right):
        floating = left if at.is_floating(left) else right
        return pa.float32() if at.is_float16(floating) else floating
    if at.is_integer(left) and at.is_integer(right):
        if pa.uint64() in (left, right) and (at.is_signed_integer(left) or at.is_signed_integer(right)):
            return pa.decimal128(20, 0)
        return pa.uint64() if pa.uint64() in (left, right) else pa.int64()
    first = decimal_for_integer(left) if at.is_integer(left) else left
    second = decimal_for_integer(right) if at.is_integer(right) else right
    scale = max(first.scale, second.scale)
    return decimal_type(max(first.precision - first.scale, second.precision - second.scale) + scale, scale)
