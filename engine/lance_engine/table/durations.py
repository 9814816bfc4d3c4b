"""Durations, and moments in the past. Python has no years before 1: longer ages mean its first moment."""

from __future__ import annotations

import datetime
import re
from typing import Final

from lance_engine.errors import InvalidArgumentError

_UNITS: Final = {
    "ms": "milliseconds", "s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days",
    "w": "weeks", "second": "seconds", "minute": "minutes", "hour": "hours", "day": "days", "week": "weeks",
}  # fmt: skip
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]+)\s*")


def duration(text: str) -> datetime.timedelta:
    """``14days``, ``1h 30m`` or ``1s`` as a duration; InvalidArgumentError for anything else."""
    total, place = datetime.timedelta(), 0
    for match in _DURATION.finditer(text.strip().lower()):
        name = match[2] if match[2] in _UNITS else match[2].removesuffix("s")
        if match.start() != place or name not in _UNITS:
            break
        try:
            total += datetime.timedelta(**{_UNITS[name]: int(match[1])})
        except OverflowError:
            break
        place = match.end()
    if not place or place != len(text.strip()):
        raise InvalidArgumentError(
            f"{text!r} is not a duration", remedy="Write a number and a unit, such as 14d, 12h or 30s"
        )
    return total


def timespan(**units: int) -> datetime.timedelta:
    """A duration of ``seconds=`` or another unit; the longest one there is for larger numbers."""
    try:
        return datetime.timedelta(**units)
    except OverflowError:
        return datetime.timedelta.max


def moment_before(age: datetime.timedelta) -> datetime.datetime:
    """The moment in UTC that was `age` ago."""
    now = datetime.datetime.now(datetime.UTC)
    try:
        return now - age
    except OverflowError:
        ends = datetime.datetime.min if age > datetime.timedelta() else datetime.datetime.max
        return ends.replace(tzinfo=datetime.UTC)


def in_utc(moment: datetime.datetime) -> datetime.datetime:
    """A moment in UTC; a naive time is local time."""
    try:
        return moment.astimezone(datetime.UTC)
    except (OverflowError, ValueError):  # in the first or the last year, where time zones do not matter
        return moment.replace(tzinfo=datetime.UTC)
