"""Functions over dates and timestamps: their parts, truncation, and timestamps from numbers and text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from lance_engine.errors import InvalidFilterError
from lance_engine.expr.coerce import read_text
from lance_engine.expr.value_types import PER_SECOND, is_text

# An array of pyarrow, or a scalar where the value is constant.
Value = Any

_FRACTIONS: Final = {"millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}
_UNITS: Final = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    *_FRACTIONS,
)


def _moment(values: Value, unit: str = "ns") -> Value:
    if at.is_date(values.type):
        return values.cast(pa.timestamp(unit))
    if not at.is_timestamp(values.type):
        raise pa.ArrowTypeError(f"{values.type} is not a date or timestamp")
    return values


def _name(value: pa.Scalar) -> str:
    if not isinstance(value, pa.Scalar) or not value.is_valid or not is_text(value.type):
        raise InvalidFilterError("The part of a date must be a constant string", remedy="Write 'month'")
    return str(value.as_py()).lower()


def date_trunc(unit: pa.Scalar, values: Value) -> Value:
    """The start of the year, quarter, month, week (from Monday), day, hour, ... of a date or timestamp."""
    name = _name(unit)
    if name not in _UNITS:
        raise InvalidFilterError(
            f"Cannot truncate dates to {name!r}", remedy=f"Use one of {', '.join(_UNITS)}"
        )
    moments = _moment(values)
    if name in _FRACTIONS and PER_SECOND[moments.type.unit] <= PER_SECOND[_FRACTIONS[name]]:
        return moments
    return pc.floor_temporal(moments, 1, name, week_starts_monday=True)


def _fraction(per_second: int) -> Callable[[Value], Value]:
    def compute(values: Value) -> Value:
        moments = _moment(values)
        naive = moments.cast(pa.timestamp("ns", moments.type.tz)).cast(pa.int64())
        within = pc.subtract(naive, _floor_minute(moments))
        return pc.divide(within, 1_000_000_000 // per_second)

    return compute


def _floor_minute(moments: Value) -> Value:
    floor = pc.floor_temporal(moments.cast(pa.timestamp("ns", moments.type.tz)), 1, "minute")
    return floor.cast(pa.int64())


def _epoch(values: Value) -> Value:
    moments = _moment(values, "s")
    return pc.divide(
        moments.cast(pa.int64()).cast(pa.float64(), safe=False), float(PER_SECOND[moments.type.unit])
    )


_PARTS: Final[dict[str, Callable[[Value], Value]]] = {
    "year": pc.year,
    "quarter": pc.quarter,
    "month": pc.month,
    "week": pc.iso_week,
    "day": pc.day,
    "hour": lambda values: pc.hour(_moment(values)),
    "minute": lambda values: pc.minute(_moment(values)),
    "second": lambda values: pc.second(_moment(values)),
    "millisecond": _fraction(1_000),
    "microsecond": _fraction(1_000_000),
    "nanosecond": _fraction(1_000_000_000),
    "dow": lambda values: pc.day_of_week(values, count_from_zero=True, week_start=7),
    "isodow": lambda values: pc.day_of_week(values, count_from_zero=False, week_start=1),
    "doy": pc.day_of_year,
    "epoch": _epoch,
}


def date_part(part: pa.Scalar, values: Value) -> Value:
    """A part of a date or timestamp as a number; the whole days, hours, ... except for ``epoch``."""
    name = _name(part)
    if name not in _PARTS:
        raise InvalidFilterError(f"Unknown date part {name!r}", remedy=f"Use one of {', '.join(_PARTS)}")
    parts = _PARTS[name](values)
    return parts if at.is_floating(parts.type) else parts.cast(pa.int64())


def _from_number(unit: str, target: str) -> Callable[[Value], Value]:
    def compute(values: Value) -> Value:
        if is_text(values.type):
            return _read(values, pa.timestamp(target))
        if at.is_timestamp(values.type):
            return values.cast(pa.timestamp(target, values.type.tz), safe=False)
        if at.is_date(values.type):
            return values.cast(pa.timestamp(target))
        if at.is_floating(values.type):
            scaled = pc.multiply(values, PER_SECOND["ns"] / PER_SECOND[unit])
            return scaled.cast(pa.int64(), safe=False).cast(pa.timestamp("ns")).cast(pa.timestamp(target))
        return values.cast(pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp(target))

    return compute


def _read(values: Value, kind: pa.DataType) -> Value:
    """Dates or timestamps from text."""
    if isinstance(values, pa.Scalar):
        return (read_text(values.as_py(), kind) if values.is_valid else pa.scalar(None, kind)).cast(kind)
    read = [None if text is None else read_text(text, kind).cast(kind).value for text in values.to_pylist()]
    whole = pa.int32() if at.is_date(kind) else pa.int64()
    return pa.array(read, whole).cast(kind)


def to_date(values: Value) -> Value:
    """A date from text or a timestamp."""
    if is_text(values.type):
        return _read(values, pa.date32())
    return values.cast(pa.date32(), safe=False)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "date_part": date_part,
    "date_trunc": date_trunc,
    "to_date": to_date,
    "to_timestamp": _from_number("s", "ns"),
    "to_timestamp_seconds": _from_number("s", "s"),
    "to_timestamp_millis": _from_number("ms", "ms"),
    "to_timestamp_micros": _from_number("us", "us"),
    "to_timestamp_nanos": _from_number("ns", "ns"),
}
