"""Constants in SQL syntax (dates, times, intervals, numbers, blobs), and calendar arithmetic.

Timestamps are Python integers in nanoseconds since 1970-01-01, so that nothing overflows or is rounded here.
"""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from dataclasses import dataclass

import pyarrow as pa

from lance_engine.arrow_values import array, scalar
from lance_engine.errors import InvalidFilterError

NANOSECONDS = 1_000_000_000
DAY = 86_400 * NANOSECONDS
_EPOCH = datetime.date(1970, 1, 1)

_DATE = r"(?P<year>\d{4,5})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})|epoch (?P<days>[+-]\d+)"
_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9})\d*)?)?"
_ZONE = r"(?P<zone>Z|UTC|[+-]\d{1,2}(?::?\d{2})?)"
_TIME_PATTERN = rf"\s*{_TIME}\s*"
_TIMESTAMP_PATTERN = rf"\s*(?:{_DATE})(?:[T ]\s*{_TIME})?\s*{_ZONE}?\s*"
_BLOB_ESCAPE = rb"\\x([0-9A-Fa-f]{2})"
_INTERVAL_PART = r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*"

_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12, "yr": 12, "y": 12, "decade": 120, "century": 1200}
_LENGTHS = {
    "nanosecond": 1,
    "microsecond": 1_000,
    "us": 1_000,
    "millisecond": 1_000_000,
    "ms": 1_000_000,
    "second": NANOSECONDS,
    "sec": NANOSECONDS,
    "s": NANOSECONDS,
    "minute": 60 * NANOSECONDS,
    "min": 60 * NANOSECONDS,
    "m": 60 * NANOSECONDS,
    "hour": 3600 * NANOSECONDS,
    "h": 3600 * NANOSECONDS,
    "day": DAY,
    "d": DAY,
    "week": 7 * DAY,
    "w": 7 * DAY,
}


@dataclass(frozen=True, slots=True)
class Interval:
    """A SQL interval: calendar months, and a length in nanoseconds (a day is 24 hours)."""

    months: int = 0
    nanoseconds: int = 0

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.nanoseconds)


def parse_time(text: str) -> int | None:
    """Nanoseconds since midnight, or None if `text` is not a time of day."""
    match = re.fullmatch(_TIME_PATTERN, text)
    return _clock(match) if match else None


def parse_timestamp(text: str) -> tuple[int, bool] | None:
    """Nanoseconds since the epoch, in UTC if there is an offset, and whether it has one; None if invalid."""
    match = re.fullmatch(_TIMESTAMP_PATTERN, text, re.IGNORECASE)
    if not match:
        return None
    days, clock = _days(match), _clock(match) if match["hour"] else 0
    if days is None or clock is None:
        return None
    zone = match["zone"]
    offset = 0
    if zone and zone[0] in "+-":
        digits = zone[1:].replace(":", "")
        offset = (int(digits[:-2]) * 60 + int(digits[-2:]) if len(digits) > 2 else int(digits) * 60) * 60
        offset = -offset if zone[0] == "-" else offset
    return days * DAY + clock - offset * NANOSECONDS, zone is not None


def timestamp_scalar(nanoseconds: int, zoned: bool) -> pa.Scalar:
    """A timestamp constant in microseconds, or nanoseconds if necessary; zoned constants are in UTC."""
    unit, count = ("us", nanoseconds // 1_000) if nanoseconds % 1_000 == 0 else ("ns", nanoseconds)
    return integer_scalar(count, pa.timestamp(unit, tz="UTC" if zoned else None))


def integer_scalar(count: int, kind: pa.DataType) -> pa.Scalar:
    """A scalar of a temporal (or integer) type from the integer that it stores."""
    storage = pa.int32() if kind.bit_width == 32 else pa.int64()
    return array([count], storage).view(kind)[0]


def parse_number(text: str) -> pa.Scalar | None:
    """An integer or decimal constant for digits, a double for an exponent; None if not a number."""
    text = text.strip().replace("_", "")
    try:
        exact = decimal.Decimal(text)
    except decimal.InvalidOperation:
        return None
    if not exact.is_finite() or "e" in text.lower():
        return scalar(float(text), pa.float64())
    if "." in text:
        _, digits, exponent = exact.as_tuple()
        scale = -int(exponent)
        precision = max(len(digits), scale, 1)
        return scalar(exact, pa.decimal128(precision, scale)) if precision <= 38 else scalar(float(text))
    return whole_scalar(int(text))


def whole_scalar(value: int) -> pa.Scalar:
    """An integer constant: int64, otherwise uint64, otherwise a decimal."""
    if -(1 << 63) <= value < 1 << 63:
        return scalar(value, pa.int64())
    if 0 <= value < 1 << 64:
        return scalar(value, pa.uint64())
    if len(str(abs(value))) > 76:
        raise InvalidFilterError(
            f"The number {value} is too large", remedy="Numbers may have up to 76 digits"
        )
    return scalar(decimal.Decimal(value))


def parse_blob(text: str) -> bytes:
    r"""The bytes of a blob constant: plain text, with ``\xAB`` for any byte."""
    return re.sub(_BLOB_ESCAPE, lambda match: bytes.fromhex(match[1].decode()), text.encode())


def parse_interval(text: str, unit: str | None) -> Interval:
    """``INTERVAL '90' DAY`` (a number and a unit), or ``INTERVAL '1 day 2 hours 03:00'`` (`unit` None)."""
    remaining, months, length = text if unit is None else f"{text} {unit}", 0, 0
    while remaining.strip():
        part = re.match(_INTERVAL_PART, remaining)
        if part:
            count, name = decimal.Decimal(part[1]), part[2].lower()
            name = name if name in _MONTHS or name in _LENGTHS else name.removesuffix("s")
            if name in _MONTHS and count % 1 == 0:
                months += int(count) * _MONTHS[name]
            elif name in _LENGTHS:
                length += int(count * _LENGTHS[name])
            else:
                break
            remaining = remaining[part.end() :]
        else:
            clock = parse_time(remaining)
            if clock is None:
                break
            length, remaining = length + clock, ""
    if remaining.strip() or not text.strip():
        raise InvalidFilterError(
            f"{text!r}{f' {unit}' if unit else ''} is not an interval",
            remedy="Write it like INTERVAL '90' DAY",
        )
    return Interval(months, length)


def shift(nanoseconds: int, interval: Interval) -> int:
    """A timestamp plus an interval; days beyond the end of a month become its last day."""
    if interval.months:
        days, clock = divmod(nanoseconds, DAY)
        try:
            date = _EPOCH + datetime.timedelta(days=days)
            months = date.year * 12 + date.month - 1 + interval.months
            first = datetime.date(months // 12, months % 12 + 1, 1)
            following = datetime.date((months + 1) // 12, (months + 1) % 12 + 1, 1)
        except (OverflowError, ValueError) as error:
            raise InvalidFilterError(
                "The date plus the interval is outside the years 1 to 9999",
                remedy="Use a date within this range",
            ) from error
        date = first.replace(day=min(date.day, (following - first).days))
        nanoseconds = (date - _EPOCH).days * DAY + clock
    return nanoseconds + interval.nanoseconds


def _days(match: re.Match[str]) -> int | None:
    if match["days"]:
        return int(match["days"])
    try:
        date = datetime.date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        return None
    return (date - _EPOCH).days


def _clock(match: re.Match[str]) -> int | None:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if hour > 24 or minute > 59 or second > 59 or (hour == 24 and (minute or second)):
        return None
    return (hour * 3600 + minute * 60 + second) * NANOSECONDS + int((match["fraction"] or "0").ljust(9, "0"))


def python_scalar(value: object) -> pa.Scalar:
    """A Python value of a SQL type as a constant; a datetime with a zone is an instant in UTC."""
    if value is None:
        return scalar(None)
    if isinstance(value, bool):
        return scalar(value)
    if isinstance(value, int):
        return whole_scalar(value)
    if isinstance(value, uuid.UUID):
        return scalar(value.bytes)
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return scalar(value.astimezone(datetime.UTC), pa.timestamp("us", tz="UTC"))
    if isinstance(value, datetime.timedelta):
        return scalar(value, pa.duration("us"))
    plain = (str, bytes, float, decimal.Decimal, datetime.datetime, datetime.date, datetime.time)
    if isinstance(value, plain):
        return scalar(value)
    raise InvalidFilterError(
        f"A filter cannot compare with a {type(value).__name__}",
        remedy="Use a number, string, date or time",
    )
