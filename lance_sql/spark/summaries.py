"""Answers to ``SELECT min(a), max(a), count(a)`` from metadata, for the planner in the JVM."""

from __future__ import annotations

import decimal
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from lance_engine.dataset import known_extremes

from lance_sql.spark.options import Options

# Tasks read the statistics of more files faster; those of object stores are requests, one after the other.
_MOST_FRAGMENTS: Final = 1000
_MOST_REMOTE_FRAGMENTS: Final = 16


def summaries(options: Options, command: Mapping[str, Any]) -> Mapping[str, Any]:
    """For each column its minimum, its maximum, and its number of nulls if it is known.

    The response is empty if rows have to be read for any of them. KnownAggregates.java reads it.
    """
    dataset = options.open()
    most = _MOST_FRAGMENTS if dataset.snapshot.is_local else _MOST_REMOTE_FRAGMENTS
    if len(dataset.snapshot.fragments) > most:
        return {}
    known_columns: dict[str, Any] = {}
    for name in command["columns"]:
        known = known_extremes(dataset, name)
        if known is None:
            return {}
        minimum, maximum = map(_text, known.extremes)
        known_columns[name] = {"min": minimum, "max": maximum, "nulls": known.nulls}
    return known_columns


def _text(bound: pa.Scalar) -> str | None:
    """A value as text; dates as days since 1970."""
    if bound.is_valid and pa.types.is_date(bound.type):
        return str(bound.cast(pa.date32()).value)  # Python has no years beyond 9999
    value = bound.as_py()
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case decimal.Decimal():
            return format(value, "f")
        case _:
            return str(value)
