"""A column of every type of datasets, for the table of types in docs/types.md."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

from lance_sql.types.table import TYPES

_MOMENT: Final = datetime.datetime(2024, 2, 29, 12, 30, 15)
_TIME: Final = datetime.time(12, 30, 15)


def _columns() -> list[pa.Array]:
    """Two values and a null of every type."""
    whole = [1, None, 2]
    return [
        pa.array([True, None, False]),
        *[pa.array(whole, kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())],
        *[pa.array(whole, kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())],
        *[
            pa.array([0.5, None, 2.0], pa.float32()).cast(kind)
            for kind in (pa.float16(), pa.float32(), pa.float64())
        ],
        pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
        pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(38, 2)),
        *[pa.array(["a", None, "äö"], kind) for kind in (pa.string(), pa.large_string())],
        *[pa.array([b"a", None, b"\x00\xff"], kind) for kind in (pa.binary(), pa.large_binary())],
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        *[
            pa.array([_MOMENT.date(), None, datetime.date(1969, 1, 1)], kind)
            for kind in (pa.date32(), pa.date64())
        ],
        *[
            pa.array([_TIME, None, datetime.time(0)], kind)
            for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"))
        ],
        *[
            pa.array([_MOMENT, None, datetime.datetime(1969, 1, 1)], pa.timestamp(unit))
            for unit in ("s", "ms", "us", "ns")
        ],
        pa.array([_MOMENT.replace(tzinfo=datetime.UTC), None, None], pa.timestamp("us", "UTC")),
        pa.array([datetime.timedelta(seconds=1), None, datetime.timedelta(days=2)], pa.duration("us")),
        pa.array([[1, None], None, []], pa.list_(pa.int64())),
        pa.array([[1, None], None, []], pa.large_list(pa.int64())),
        pa.array([[0.5, 1.0], None, [2.0, 4.0]], pa.list_(pa.float32(), 2)),
        pa.array(
            [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}],
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
        ),
        pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array(["x", None, "x"]).dictionary_encode(),
    ]


#: The columns by the names of their types.
COLUMNS: Final = {str(column.type): column for column in _columns()}


def table() -> pa.Table:
    """All columns, c0 and so on, behind the number of the row."""
    return pa.table(
        {"id": range(3)} | {f"c{number}": column for number, column in enumerate(COLUMNS.values())}
    )


def recorded() -> dict[str, dict[str, str]]:
    """Type -> engine -> what the engine calls it; the tests compare it with what the engines say."""
    engines = ("duckdb", "datafusion", "spark")
    return {str(names.arrow): {engine: getattr(names, engine) for engine in engines} for names in TYPES}


def plain(value: object) -> object:
    """One Python value for equal ones, whichever class the rows of an engine have."""
    if isinstance(value, pa.MonthDayNano):  # an interval of DuckDB
        return datetime.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
    if hasattr(value, "asDict"):  # a struct of Spark
        value = value.asDict()
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, tuple):  # an array of DuckDB
        return list(value)
    return bytes(value) if isinstance(value, bytearray) else value
