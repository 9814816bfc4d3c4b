"""CAST over arrays, with SQL's rounding where Arrow's cast would truncate or refuse."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine.expr import constants
from lance_engine.expr.value_types import PER_SECOND, is_bytes, is_list, is_text, is_zoned

# Integers and powers of ten up to these are exact in double precision.
_EXACT_INTEGERS = 1 << 53
_EXACT_POWERS = 22

Values: TypeAlias = "pa.Array | pa.Scalar"


def convert(values: Values, target: pa.DataType, *, lenient: bool = False) -> Values:
    """`values` cast to `target`; what does not fit raises `pyarrow.ArrowInvalid`, or is null when `lenient`.

    Floating point numbers are rounded to integers half to even, decimals half away from zero; a naive
    timestamp is local time in the zone of `target`, and dates and times are those of the zone of `values`.
    """
    if values.type == target:
        return values
    if not lenient:
        return _convert(values, target)
    try:
        return _convert(values, target)
    except pa.ArrowInvalid:
        single = isinstance(values, pa.Scalar)
        column = pa.repeat(values, 1) if single else values
        result = pa.concat_arrays(
            [_convert_or_null(column.slice(row, 1), target) for row in range(len(column))]
        )
        return result[0] if single else result


def _convert_or_null(row: pa.Array, target: pa.DataType) -> pa.Array:
    """The slow but rare case of TRY_CAST: one row at a time, as kernels do not say which rows failed."""
    try:
        return _convert(row, target)
    except pa.ArrowInvalid:
        return pa.nulls(1, target)


def _convert(values: Values, target: pa.DataType) -> Values:
    source = values.type
    if at.is_float16(source):
        return _convert(values.cast(pa.float32()), target)
    if at.is_float16(target) and at.is_decimal(source):
        return _convert(values.cast(pa.float32(), safe=False), target)
    if at.is_floating(source) and at.is_integer(target):
        return pc.round(values, round_mode="half_to_even").cast(target)
    if at.is_decimal(source) and at.is_integer(target):
        return pc.round(values, round_mode="half_towards_infinity").cast(target)
    if at.is_decimal(source) and at.is_decimal(target) and source.scale > target.scale:
        return pc.round(values, target.scale, round_mode="half_towards_infinity").cast(target)
    if at.is_decimal(source) and at.is_floating(target):
        return _rounded_once(values, target)
    if at.is_floating(target) and not at.is_boolean(source) and not is_text(source):
        return values.cast(target, safe=False)
    if at.is_decimal(target) and at.is_integer(source):
        wide = pa.decimal128(38, target.scale) if target.scale <= 18 else pa.decimal256(76, target.scale)
        return values.cast(wide).cast(target)
    if at.is_timestamp(source) and (at.is_date(target) or at.is_time(target)):
        naive = pc.local_timestamp(values) if is_zoned(source) else values
        return naive.cast(target, safe=not at.is_date(target))
    if at.is_timestamp(source) and at.is_timestamp(target):
        if is_zoned(target) and not is_zoned(source):
            values = in_zone(values, target.tz)
        # A coarser unit truncates.
        return values.cast(target, safe=PER_SECOND[target.unit] >= PER_SECOND[source.unit])
    if is_text(source) and is_bytes(target) and isinstance(values, pa.Scalar) and values.is_valid:
        return pa.scalar(constants.parse_blob(values.as_py()), target)
    if isinstance(values, pa.Array) and (at.is_struct(source) or is_list(source)):
        return _convert_nested(values, target)
    return values.cast(target)


def _rounded_once(values: Values, target: pa.DataType) -> Values:
    """Decimals as the nearest floating-point numbers; Arrow multiplies by an inexact power of ten."""
    scale = values.type.scale
    if isinstance(values, pa.Scalar):
        return _rounded_once(pa.repeat(values, 1), target)[0]
    words = np.frombuffer(values.buffers()[1] or b"", np.int64).reshape(-1, values.type.bit_width // 64)
    words = words[values.offset :][: len(values)]
    digits = words[:, 0]
    small = (np.abs(digits) < _EXACT_INTEGERS) & (words[:, 1:] == (digits >> 63)[:, None]).all(axis=1)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    if 0 <= scale <= _EXACT_POWERS and bool((small | missing).all()):
        rounded = digits / 10.0**scale
    else:
        rounded = np.array([0.0 if value is None else float(value) for value in values.to_pylist()])
    return pa.array(rounded, pa.float64(), mask=missing).cast(target, safe=False)


def in_zone(values: Values, zone: str) -> Values:
    """Local times of a zone as instants; of two instants, and for times that were left out, the first."""
    return pc.assume_timezone(values, zone, ambiguous="earliest", nonexistent="earliest")


def _convert_nested(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Lists by item, structs by the names of their fields."""
    source = values.type
    if at.is_struct(source) and at.is_struct(target):
        columns = dict(zip((field.name for field in source), values.flatten(), strict=True))
        if columns.keys() == {field.name for field in target}:
            fields = [convert(columns[field.name], field.type) for field in target]
            return pa.StructArray.from_arrays(fields, fields=list(target), mask=values.is_null())
    if is_list(source) and is_list(target) and not at.is_fixed_size_list(source):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        items = convert(values.values.slice(first, last - first), target.value_type)
        offsets = pc.subtract(values.offsets, values.offsets[0])
        kind = pa.ListArray if at.is_list(source) else pa.LargeListArray
        return kind.from_arrays(offsets, items, mask=values.is_null()).cast(target)
    return values.cast(target)
