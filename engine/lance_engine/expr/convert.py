"""CAST over arrays, with SQL's rounding where Arrow's cast would truncate or refuse."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as at

from lance_engine.arrow_compute import pc
from lance_engine.expr import constants
from lance_engine.expr.value_types import PER_SECOND, is_bytes, is_text, is_zoned

Values: TypeAlias = "pa.Array | pa.Scalar"


def convert(values: Values, target: pa.DataType, *, lenient: bool = False) -> Values:
    """`values` cast to `target`; what does not fit raises `pyarrow.ArrowInvalid`, or is null when `lenient`.

    Floating point numbers are rounded to integers half to even, decimals half away from zero; a naive
    timestamp is UTC.
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
    if at.is_floating(target) and not at.is_boolean(source) and not is_text(source):
        return values.cast(target, safe=False)
    if at.is_decimal(target) and at.is_integer(source):
        wide = pa.decimal128(38, target.scale) if target.scale <= 18 else pa.decimal256(76, target.scale)
        return values.cast(wide).cast(target)
    if at.is_timestamp(source) and (at.is_date(target) or at.is_time(target)):
        naive = values.cast(pa.timestamp(source.unit)) if is_zoned(source) else values
        return naive.cast(target, safe=not at.is_date(target))
    if at.is_timestamp(source) and at.is_timestamp(target):
        # Naive and zoned timestamps have the same count; a coarser unit truncates it.
        return values.cast(target, safe=PER_SECOND[target.unit] >= PER_SECOND[source.unit])
    if is_text(source) and is_bytes(target) and isinstance(values, pa.Scalar) and values.is_valid:
        return pa.scalar(constants.parse_blob(values.as_py()), target)
    return values.cast(target)
