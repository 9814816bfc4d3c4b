"""The native pass over the values of a column: bounds and null counts per zone, and their bytes."""

from __future__ import annotations

import datetime
import math
import random
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.encodings.leaves import leaves_of
from lance_engine.encodings.zone_statistics import joined_statistics, zone_kind, zone_map, zone_statistics
from lance_engine.kernels import ZoneStatistics
from lance_engine.schema_tree import Field, Schema

NAN = math.nan


def statistics(array: pa.Array, zone_rows: int, first_row: int = 0) -> ZoneStatistics:
    field = Schema.from_arrow(pa.schema([pa.field("x", array.type)])).fields[0]
    *_, leaf = leaves_of(array, field)
    found = zone_statistics(leaf, zone_rows, first_row)
    assert found is not None
    return found


def bounds(found: ZoneStatistics, kind: pa.DataType, *, upper: bool) -> list[Any]:
    known, ends, data = found.bounds(upper)
    stops = ends.view(np.uint64).tolist()
    pieces = [data.tobytes()[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
    held = [piece if flag else None for piece, flag in zip(pieces, known, strict=True)]
    if pa.types.is_boolean(kind):
        return [None if piece is None else piece == b"\1" for piece in held]
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if piece is None else piece.decode() for piece in held]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return held
    buffers = [pa.py_buffer(np.packbits(known, bitorder="little")), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, found.zones, buffers).to_pylist()


def both(array: pa.Array, zone_rows: int) -> tuple[list[Any], list[Any], list[int]]:
    found = statistics(array, zone_rows)
    assert found.rows == len(array)
    low, high = (bounds(found, array.type, upper=upper) for upper in (False, True))
    return low, high, found.null_counts().view(np.uint32).tolist()


WIDE = 10**60
VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False],
    pa.int8(): [-128, -1, 0, 127],
    pa.int16(): [-(2**15), -1, 0, 2**15 - 1],
    pa.int32(): [-(2**31), -1, 0, 2**31 - 1],
    pa.int64(): [-(2**63), -1, 0, 2**63 - 1],
    pa.uint8(): [0, 127, 255],
    pa.uint16(): [0, 2**15, 2**16 - 1],
    pa.uint32(): [0, 2**31, 2**32 - 1],
    pa.uint64(): [0, 2**63, 2**64 - 1],
    pa.float16(): [-math.inf, -1.5, 0.25, 2.0, math.inf],
    pa.float32(): [-math.inf, -1.5, 0.25, 2.0, math.inf],
    pa.float64(): [-math.inf, -1.5, 0.25, 2.0, math.inf],
    pa.decimal128(38, 2): [Decimal("-9e30"), Decimal("-0.01"), Decimal("0.00"), Decimal("9e30")],
    pa.decimal256(70, 0): [Decimal(-WIDE), Decimal(-1), Decimal(0), Decimal(2**64), Decimal(WIDE)],
    pa.date32(): [datetime.date(1900, 1, 1), datetime.date(2020, 2, 2)],
    pa.date64(): [datetime.date(1900, 1, 1), datetime.date(2020, 2, 2)],
    pa.time32("ms"): [datetime.time(0), datetime.time(23, 59)],
    pa.time64("us"): [datetime.time(0), datetime.time(23, 59)],
    pa.timestamp("us"): [datetime.datetime(1900, 1, 1), datetime.datetime(2020, 2, 2)],
    pa.duration("us"): [datetime.timedelta(-1), datetime.timedelta(1)],
    pa.string(): ["", "a", "ab", "b", "é", "\U0010ffff", "a\0"],
    pa.large_string(): ["", "a", "ab", "b", "abcdefgh", "abcdefghi", "abcdefgg"],
    pa.binary(): [b"", b"\0", b"\0\0", b"a", b"\xff", b"abcdefgh\1", b"abcdefgh"],
    pa.large_binary(): [b"", b"\x7f", b"\x80"],
}


@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_bounds_are_those_of_the_values(kind: pa.DataType, nulls: float) -> None:
    source = random.Random(7)
    picked = [None if source.random() < nulls else source.choice(VALUES[kind]) for _ in range(150)]
    # A slice, so that buffers do not start with the first value.
    array = pa.array([*picked[:3], *picked], kind).slice(3)
    for zone_rows in (1, 7, 64, 150, 1000):
        zones = [picked[start : start + zone_rows] for start in range(0, 150, zone_rows)]
        held = [[value for value in zone if value is not None] for zone in zones]
        low, high, null_counts = both(array, zone_rows)
        assert low == [min(values, default=None) for values in held]
        assert high == [max(values, default=None) for values in held]
        assert null_counts == [zone.count(None) for zone in zones]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_nan_is_the_greatest_value(kind: pa.DataType) -> None:
    values = [1.0, NAN, -1.0, NAN, NAN, None, NAN, None, 3.0, *[2.0] * 30, NAN]
    low, high, _ = both(pa.array(values, kind), 3)
    assert low[0] == -1.0
    assert math.isnan(high[0])
    assert math.isnan(low[1])
    assert math.isnan(high[1])
    assert low[2] == 3.0
    assert math.isnan(high[2])
    # NaN in a long run without nulls.
    low, high, _ = both(pa.array([*range(100), NAN, *range(100)], kind), 201)
    assert low == [0.0]
    assert math.isnan(high[0])


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_zero_bounds_take_both_signs(kind: pa.DataType) -> None:
    for zeros in ([0.0, 0.0], [-0.0, -0.0], [0.0, -0.0]):
        (low,), (high,), _ = both(pa.array(zeros, kind), 2)
        assert math.copysign(1, low) == -1
        assert math.copysign(1, high) == 1


def test_long_text_is_cut_at_characters() -> None:
    long = {
        "a" * 33: ("a" * 32, "a" * 31 + "b"),
        "é" * 17: ("é" * 16, "é" * 15 + "ê"),
        "a" + "é" * 17: ("a" + "é" * 15, "a" + "é" * 14 + "ê"),
        "\ud7ff" * 11: ("\ud7ff" * 10, "\ud7ff" * 9 + "\ue000"),
        "a" + "\U0010ffff" * 20: ("a" + "\U0010ffff" * 7, "b"),
        "a" * 31 + "\x7f" + "b": ("a" * 31 + "\x7f", "a" * 31 + "\x80"),
        "a" * 30 + "\u07ff" + "b": ("a" * 30 + "\u07ff", "a" * 30 + "\u0800"),
        "a" * 29 + "\uffff" + "b": ("a" * 29 + "\uffff", "a" * 29 + "\U00010000"),
        "\U0010ffff" * 20: ("\U0010ffff" * 8, None),
        "a" * 32: ("a" * 32, "a" * 32),
    }
    low, high, _ = both(pa.array(list(long)), 1)
    assert list(zip(low, high, strict=True)) == list(long.values())
    for text, (least, greatest) in long.items():
        assert least <= text
        assert greatest is None or greatest >= text


def test_long_bytes_are_cut() -> None:
    low, high, _ = both(pa.array([b"a" * 40, b"a" + b"\xff" * 40, b"\xff" * 33]), 1)
    assert low == [b"a" * 32, b"a" + b"\xff" * 31, b"\xff" * 32]
    assert high == [b"a" * 31 + b"b", b"b", None]


def test_text_that_is_not_utf8_has_no_bounds() -> None:
    bad = [b"\xff", b"a\x80", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"ok"]
    array = pa.array(bad, pa.binary()).view(pa.string())
    low, high, _ = both(array, 1)
    assert low == [None] * 6 + ["ok"]
    assert high == low


def test_parts_join_wherever_they_were_cut() -> None:
    source = random.Random(3)
    for kind, values in VALUES.items():
        picked = [None if source.random() < 0.4 else source.choice(values) for _ in range(60)]
        array = pa.array(picked, kind)
        cuts = sorted(source.sample(range(1, 60), 6))
        pieces = zip([0, *cuts], [*cuts, 60], strict=True)
        parts = [statistics(array.slice(start, stop - start), 16, start) for start, stop in pieces]
        joined, whole = joined_statistics(parts), statistics(array, 16)
        assert joined.zones == whole.zones == 4
        for upper in (False, True):
            assert bounds(joined, kind, upper=upper) == bounds(whole, kind, upper=upper)
        assert joined.null_counts().tobytes() == whole.null_counts().tobytes()


def test_a_bound_that_one_part_lacks_the_whole_lacks() -> None:
    texts = pa.array(["a", "\U0010ffff" * 20, "b", "c"])
    joined = joined_statistics([statistics(texts.slice(0, 2), 4, 0), statistics(texts.slice(2), 4, 2)])
    assert bounds(joined, pa.string(), upper=True) == [None]
    assert bounds(joined, pa.string(), upper=False) == ["a"]


def test_parts_that_do_not_follow_each_other_are_refused() -> None:
    array = pa.array([1, 2, 3])
    first = statistics(array, 2)
    with pytest.raises(ValueError, match="other rows"):
        first.append(statistics(array, 2, 4))
    with pytest.raises(ValueError, match="other rows"):
        first.append(statistics(array.cast(pa.int32()), 2, 3))


def test_a_struct_field_counts_the_nulls_of_its_struct() -> None:
    kind = pa.struct([pa.field("a", pa.int64())])
    array = pa.array([{"a": 5}, None, {"a": None}, {"a": 3}], kind)
    found = statistics(array, 2)
    assert bounds(found, pa.int64(), upper=False) == [5, 3]
    assert found.null_counts().view(np.uint32).tolist() == [1, 1]


def test_columns_without_an_order_have_no_zones() -> None:
    unordered = [
        pa.list_(pa.int32()),
        pa.list_(pa.int32(), 2),
        pa.dictionary(pa.int8(), pa.string()),
        pa.binary(4),
        pa.null(),
        pa.list_(pa.struct([pa.field("a", pa.string())])),
    ]
    for kind in unordered:
        array = pa.nulls(3, kind)
        (leaf,) = leaves_of(array, Schema.from_arrow(pa.schema([pa.field("x", kind)])).fields[0])
        assert zone_statistics(leaf, 2, 0) is None
    json = Field("x", 0, -1, "json", True)
    blob = Field("x", 0, -1, "large_binary", True, metadata={"lance-encoding:blob": "true"})
    assert zone_kind(json) is None
    assert zone_kind(blob) is None


def test_the_bytes_of_a_zone_map() -> None:
    array = pa.array(range(5), pa.int32())
    field = Schema.from_arrow(pa.schema([pa.field("x", pa.int32())])).fields[0]
    stored = zone_map(field, statistics(array, 2))
    assert len(stored) == 439
    assert stored[:36] == struct.pack("<9i", 0, 2, 4, 1, 3, 4, 0, 0, 0)
    assert struct.unpack("<QQQIIHH4s", stored[-40:]) == (36, 351, 399, 0, 3, 0, 3, b"LANC")
