"""The position of a constant among the values of a type: equal to one, between two, or out of range.

This makes comparisons across types exact without converting the column: ``int_column < 1.5`` is ``int_column
<= 1``.
"""

from __future__ import annotations

import decimal
import enum
import math
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lance_engine.arrow_values import scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import constants, render
from lance_engine.expr.convert import in_zone
from lance_engine.expr.value_types import (
    MILLISECONDS_PER_DAY,
    PER_SECOND,
    integer_limits,
    is_bytes,
    is_number,
    is_text,
    is_zoned,
    value_type,
)


class Place(enum.Enum):
    """The position of a constant relative to the values of a type."""

    EXACT = "equal to a value"
    BETWEEN = "directly above a value and below the next"
    BELOW = "below every value"
    ABOVE = "above every value (but NaN)"


def place(constant: pa.Scalar, stored_type: pa.DataType) -> tuple[Place, pa.Scalar | None]:
    """The position of a non-null `constant` among the values of `stored_type`.

    Returns the place, and for EXACT the value and for BETWEEN the value below, in
    ``value_type(stored_type)``. A constant compared with a float or double column is rounded to it, as SQL
    engines do, unless it is itself a floating point number. A naive timestamp is local time next to a
    zoned one.
    Raises `InvalidFilterError` for a constant that cannot be compared with the type.
    """
    target = value_type(stored_type)
    if is_text(constant.type) and not is_text(target):
        constant = read_text(constant.as_py(), stored_type)
    if constant.type == target:
        return Place.EXACT, constant
    if at.is_boolean(constant.type) and is_number(target):
        constant = scalar(int(constant.as_py()), pa.int64())
    if at.is_boolean(target) and at.is_integer(constant.type):
        where, held = place(constant, pa.uint8())
        if held is not None and held.as_py() > 1:
            where = Place.ABOVE
        return where, scalar(bool(held.as_py())) if where is Place.EXACT and held is not None else None
    if is_number(target) and is_number(constant.type):
        return _place_number(constant, target)
    if is_text(target) and is_text(constant.type):
        return Place.EXACT, scalar(constant.as_py(), target)
    if is_bytes(target) and is_bytes(value_type(constant.type)):
        return Place.EXACT, scalar(constant.as_py(), target)
    if (at.is_date(target) or at.is_timestamp(target)) and (
        at.is_date(constant.type) or at.is_timestamp(constant.type)
    ):
        if at.is_timestamp(constant.type) and is_zoned(target) and not is_zoned(constant.type):
            constant = in_zone(constant, target.tz)
        return _place_count(_nanoseconds(constant), target)
    if (at.is_time(target) and at.is_time(constant.type)) or (
        at.is_duration(target) and at.is_duration(constant.type)
    ):
        return _place_count(_nanoseconds(constant), target)
    raise InvalidFilterError(
        f"{render.literal(constant)} ({render.type_name(constant.type)}) cannot be compared with a value "
        f"of type {render.type_name(stored_type)}",
        remedy=f"Use a constant of type {render.type_name(stored_type)}, or CAST one side",
    )


def read_text(text: str, stored_type: pa.DataType) -> pa.Scalar:
    """A string constant converted for comparison with `stored_type`."""
    target = value_type(stored_type)
    value: pa.Scalar | None = None
    if is_number(target):
        value = constants.parse_number(text)
        if value is not None and at.is_floating(value.type) and at.is_floating(target):
            value = round_to(value.as_py(), target)
    elif at.is_boolean(target):
        held = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}.get(
            text.strip().lower()
        )
        value = None if held is None else scalar(held)
    elif at.is_date(target) or at.is_timestamp(target):
        moment = constants.parse_timestamp(text)
        zoned = is_zoned(target) and moment is not None and moment[1]
        value = None if moment is None else constants.timestamp_scalar(moment[0], zoned)
    elif at.is_time(target):
        clock = constants.parse_time(text)
        value = None if clock is None else constants.integer_scalar(clock, pa.time64("ns"))
    elif at.is_duration(target):
        interval = constants.parse_interval(text, None)
        value = None if interval.months else duration_scalar(interval.nanoseconds)
    elif is_bytes(target):
        if getattr(stored_type, "extension_name", "") == "arrow.uuid":
            try:
                value = scalar(uuid.UUID(text).bytes, target)
            except ValueError:
                value = None
        else:
            value = scalar(constants.parse_blob(text), target)
    if value is None:
        raise InvalidFilterError(
            f"{render.string(text)} is not a value of type {render.type_name(stored_type)}",
            remedy=f"Use a constant of type {render.type_name(stored_type)}",
        )
    return value


def duration_scalar(nanoseconds: int) -> pa.Scalar:
    """A duration constant in microseconds, or nanoseconds if necessary."""
    unit, count = ("us", nanoseconds // 1_000) if nanoseconds % 1_000 == 0 else ("ns", nanoseconds)
    return constants.integer_scalar(count, pa.duration(unit))


def round_to(value: float, target: pa.DataType) -> pa.Scalar:
    """A floating point scalar nearest to `value`."""
    with np.errstate(over="ignore"):  # the nearest may be infinite
        return scalar(_numpy_type(target)(value), target)


def _numpy_type(kind: pa.DataType) -> type[np.floating]:
    return np.float64 if at.is_float64(kind) else np.float32 if at.is_float32(kind) else np.float16


def _place_number(constant: pa.Scalar, target: pa.DataType) -> tuple[Place, pa.Scalar | None]:
    value = constant.as_py()
    if at.is_floating(target):
        return _place_floating(value, constant.type, target)
    from fractions import Fraction  # most constants have the type of their column

    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return (Place.BELOW if value < 0 else Place.ABOVE), None
        value = Fraction(float(value))
    if at.is_integer(target):
        below = math.floor(value)
        low, high = integer_limits(target)
        if below < low:
            return Place.BELOW, None
        if below > high:
            return Place.ABOVE, None
        return (Place.EXACT if below == value else Place.BETWEEN), scalar(below, target)
    scaled = Fraction(value) * Fraction(10) ** target.scale
    below = math.floor(scaled)
    limit = 10**target.precision
    if below <= -limit:
        return Place.BELOW, None
    if below >= limit:
        return Place.ABOVE, None
    digits = tuple(map(int, str(abs(below))))
    held = decimal.Decimal((int(below < 0), digits, -target.scale))
    return (Place.EXACT if below == scaled else Place.BETWEEN), scalar(held, target)


def _place_floating(
    value: float | decimal.Decimal, kind: pa.DataType, target: pa.DataType
) -> tuple[Place, pa.Scalar]:
    held_type = _numpy_type(target)
    with np.errstate(over="ignore"):
        held = held_type(value)
    if not at.is_floating(kind) or math.isnan(value) or float(held) == value:
        return Place.EXACT, scalar(held, target)
    below = held if float(held) < value else np.nextafter(held, held_type(-np.inf))
    return Place.BETWEEN, scalar(below, target)


def _nanoseconds(constant: pa.Scalar) -> int:
    kind = constant.type
    if at.is_date32(kind):
        return int(constant.value) * constants.DAY
    per_second = 1_000 if at.is_date64(kind) else PER_SECOND[kind.unit]
    return int(constant.value) * (constants.NANOSECONDS // per_second)


def _place_count(nanoseconds: int, target: pa.DataType) -> tuple[Place, pa.Scalar | None]:
    if at.is_date32(target):
        step = constants.DAY
    elif at.is_date64(target):
        step = constants.DAY // MILLISECONDS_PER_DAY
    else:
        step = constants.NANOSECONDS // PER_SECOND[target.unit]
    below, rest = divmod(nanoseconds, step)
    limit = 1 << (target.bit_width - 1)
    if below < -limit:
        return Place.BELOW, None
    if below >= limit:
        return Place.ABOVE, None
    return (Place.BETWEEN if rest else Place.EXACT), constants.integer_scalar(below, target)
