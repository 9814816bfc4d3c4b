"""Pruning: what a filter may and must be over rows of which only statistics are known."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.expr.from_sql import parse_sql
from lance_engine.expr.statistics import ColumnStatistics, consulted_columns, match_zones

SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "j": pa.int32(),
        "f": pa.float64(),
        "d": pa.decimal128(9, 2),
        "s": pa.string(),
        "b": pa.binary(),
        "bo": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us"),
        "st": pa.struct([pa.field("a", pa.int32())]),
    }
)
NAN = float("nan")


def zone(low: Any, high: Any, nulls: int | None = 0, nans: int | None = None) -> ColumnStatistics:
    """Statistics of a single zone of ten rows."""
    return ColumnStatistics.from_counts(
        np.array([10]), _bound(low), _bound(high), _count(nulls), _count(nans)
    )


UNKNOWN = ColumnStatistics.from_counts(np.array([10]))


def _bound(value: Any) -> pa.Array | None:
    if value is None:
        return None
    return pa.repeat(value, 1) if isinstance(value, pa.Scalar) else pa.array([value])


def _count(value: int | None) -> np.ndarray | None:
    return None if value is None else np.array([value])


def verdict(text: str, **zones: ColumnStatistics) -> str:
    """'all', 'some' (some rows may match) or 'none'."""
    statistics = {tuple(name.split("__")): held for name, held in zones.items()}
    (may,), (must,) = match_zones(parse_sql(text, SCHEMA), statistics, 1)
    assert may or not must
    return "all" if must else "some" if may else "none"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i < 10", "none"),
        ("i <= 10", "some"),
        ("i < 21", "all"),
        ("i > 20", "none"),
        ("i >= 10", "all"),
        ("i = 9", "none"),
        ("i = 15", "some"),
        ("i <> 9", "all"),
        ("i <> 15", "some"),
        ("i < 9.5", "none"),
        ("i = 15.5", "none"),
        ("i IN (1, 2, 3, 30)", "none"),
        ("i IN (1, 20)", "some"),
        ("i NOT IN (1, 2)", "all"),
        ("i NOT IN (1, 2, NULL)", "none"),
        ("i IS NULL", "none"),
        ("i IS NOT NULL", "all"),
        ("i BETWEEN 10 AND 20", "all"),
        ("i BETWEEN 21 AND 30", "none"),
        ("i < 10 OR i > 20", "none"),
        ("i < 10 OR i < 30", "all"),
        ("i < 30 AND i > 30", "none"),
        ("NOT (i < 10)", "all"),
        ("i = i", "all"),
        ("i <> i", "none"),
        ("i + 1 > 100", "some"),
        ("j = 1", "some"),
        ("j = 1 AND i > 20", "none"),
        ("(i < 10) IS FALSE", "all"),
        ("(i < 10) IS NULL", "none"),
        ("i IS DISTINCT FROM 9", "all"),
        ("i IS NOT DISTINCT FROM NULL", "none"),
        ("TRUE", "all"),
        ("FALSE", "none"),
        ("i = NULL", "none"),
    ],
)
def test_integers(text: str, expected: str) -> None:
    assert verdict(text, i=zone(10, 20)) == expected


def test_a_constant_zone_is_all_or_nothing() -> None:
    assert verdict("i = 5", i=zone(5, 5)) == "all"
    assert verdict("i <> 5", i=zone(5, 5)) == "none"
    assert verdict("i IN (3, 5, 7)", i=zone(5, 5)) == "all"
    assert verdict("i NOT IN (3, 5, 7)", i=zone(5, 5)) == "none"


def test_nulls_prevent_must_but_not_none() -> None:
    assert verdict("i > 0", i=zone(10, 20, nulls=1)) == "some"
    assert verdict("i > 0", i=zone(10, 20, nulls=None)) == "some"
    assert verdict("i > 30", i=zone(10, 20, nulls=1)) == "none"
    assert verdict("i > 0 OR i IS NULL", i=zone(10, 20, nulls=1)) == "some"
    assert verdict("i IS NULL", i=zone(None, None, nulls=10)) == "all"
    assert verdict("i IS NOT NULL", i=zone(None, None, nulls=10)) == "none"
    assert verdict("i = 1 OR i <> 1", i=zone(None, None, nulls=10)) == "none"
    assert verdict("NOT (i = 1)", i=zone(None, None, nulls=10)) == "none"
    assert verdict("i = i", i=zone(10, 20, nulls=1)) == "some"


def test_missing_statistics_may_match() -> None:
    for text in (
        "i = 1",
        "i < 1",
        "i IS NULL",
        "i IS NOT NULL",
        "s LIKE 'a%'",
        "bo",
        "st.a = 1",
        "i IN (1, 2)",
    ):
        assert verdict(text) == "some"
        assert verdict(text, i=UNKNOWN) == "some"
    assert verdict("i < 10", i=zone(10, None)) == "none"
    assert verdict("i > 10", i=zone(10, None)) == "some"
    assert verdict("i > 10", i=zone(None, 10)) == "none"


def test_nan_is_above_every_value() -> None:
    assert verdict("f > 100", f=zone(1.0, 2.0, nans=0)) == "none"
    assert verdict("f > 100", f=zone(1.0, 2.0, nans=1)) == "some"
    assert verdict("f > 100", f=zone(1.0, 2.0, nans=None)) == "some"
    assert verdict("f < 100", f=zone(1.0, 2.0, nans=0)) == "all"
    assert verdict("f < 100", f=zone(1.0, 2.0, nans=None)) == "some"
    assert verdict("f > 0", f=zone(1.0, 2.0, nans=None)) == "all"
    assert verdict("f = 'nan'", f=zone(1.0, 2.0, nans=0)) == "none"
    assert verdict("f = 'nan'", f=zone(None, None, nans=10)) == "all"
    assert verdict("f > 1e300", f=zone(None, None, nans=10)) == "all"
    assert verdict("f <= 'nan'", f=zone(1.0, 2.0, nans=None)) == "all"
    # Bounds that are NaN bound nothing.
    assert verdict("f < 0", f=zone(NAN, NAN)) == "some"
    assert verdict("f IN (0.5, 'nan'::double)", f=zone(1.0, 2.0, nans=1)) == "some"
    assert verdict("f = 0", f=zone(-0.0, -0.0, nans=0)) == "all"


def test_strings_and_prefixes() -> None:
    held = zone("abc", "abz")
    assert verdict("s LIKE 'b%'", s=held) == "none"
    assert verdict("s LIKE 'ab%'", s=held) == "all"
    assert verdict("s LIKE 'abm%'", s=held) == "some"
    assert verdict("s LIKE 'a_c%x'", s=held) == "some"
    assert verdict("s LIKE 'b_c%x'", s=held) == "none"
    assert verdict("s NOT LIKE 'b%'", s=held) == "all"
    assert verdict("s LIKE '%c'", s=held) == "some"
    assert verdict("starts_with(s, 'aa')", s=held) == "none"
    assert verdict("s LIKE 'ab%'", s=zone("abc", "abz", nulls=1)) == "some"
    assert verdict("s LIKE 'b%'", s=zone(None, None, nulls=10)) == "none"


def test_truncated_bounds() -> None:
    # Values run from "apple..." to "apricot..."; only three characters were kept.
    held = zone("app", "aps")
    assert verdict("s = 'apricot'", s=held) == "some"
    assert verdict("s >= 'aps'", s=held) == "some"
    assert verdict("s > 'aps'", s=held) == "none"


def test_other_types() -> None:
    assert verdict("d > 10.005", d=zone(Decimal("1.00"), Decimal("10.00"))) == "none"
    assert verdict("b > '\\xFF'::blob", b=zone(b"a", b"b")) == "none"
    assert verdict("bo", bo=zone(False, False)) == "none"
    assert verdict("NOT bo", bo=zone(False, False)) == "all"
    assert verdict("bo IS NOT FALSE", bo=zone(True, True)) == "all"
    day = datetime.date(2020, 1, 1)
    assert verdict("day < DATE '2020-01-01'", day=zone(day, day)) == "none"
    assert verdict("day < TIMESTAMP '2020-01-01 01:00:00'", day=zone(day, day)) == "all"
    second = pa.scalar(1, pa.timestamp("s"))
    assert verdict("ts > TIMESTAMP '1970-01-01 00:00:01'", ts=zone(second, second)) == "none"
    assert verdict("st.a > 5", st__a=zone(1, 2)) == "none"
    # Bounds of a type that does not compare say nothing.
    assert verdict("i = 5", i=zone("1", "2")) == "some"


def test_two_columns() -> None:
    assert verdict("i < j", i=zone(1, 5), j=zone(6, 9)) == "all"
    assert verdict("i > j", i=zone(1, 5), j=zone(6, 9)) == "none"
    assert verdict("i = j", i=zone(1, 5), j=zone(6, 9)) == "none"
    assert verdict("i <= j", i=zone(1, 5), j=zone(5, 9)) == "all"
    assert verdict("i < j", i=zone(1, 5), j=zone(5, 9)) == "some"


def test_zones_are_judged_one_by_one() -> None:
    statistics = ColumnStatistics.from_counts(
        np.array([5, 5, 5, 5]),
        pa.array([1, 10, None, 4], pa.int32()),
        pa.array([9, 19, None, 4], pa.int32()),
        np.array([0, 0, 5, 1]),
    )
    found = match_zones(parse_sql("i < 10", SCHEMA), {("i",): statistics}, 4)
    assert found.may.tolist() == [True, False, False, True]
    assert found.must.tolist() == [True, False, False, False]
    found = match_zones(parse_sql("i IN (4, 12)", SCHEMA), {("i",): statistics}, 4)
    assert found.may.tolist() == [True, True, False, True]
    assert found.must.tolist() == [False, False, False, False]
    parts = statistics.take(np.array([3, 3, 0]))
    assert match_zones(parse_sql("i = 4", SCHEMA), {("i",): parts}, 3).may.tolist() == [True, True, True]
    assert match_zones(parse_sql("i > 4", SCHEMA), {("i",): parts}, 3).may.tolist() == [False, False, True]
    assert match_zones(parse_sql("TRUE", SCHEMA), {}, 2).must.tolist() == [True, True]


def test_lists_of_any_type() -> None:
    day = datetime.date(2020, 1, 5)
    assert verdict("day IN (DATE '2020-01-01', DATE '2020-01-09')", day=zone(day, day)) == "none"
    assert verdict("day IN (DATE '2020-01-01', DATE '2020-01-05')", day=zone(day, day)) == "all"
    assert verdict("d IN (1.5, 3.5)", d=zone(Decimal("1.60"), Decimal("3.40"))) == "none"
    assert verdict("s IN ('b', 'y')", s=zone("a", "c")) == "some"
    assert verdict("s IN ('b', 'y')", s=zone("c", "x")) == "none"
    assert verdict("s IN ('b', 'y')", s=zone("c", None)) == "some"
    assert verdict("b IN ('a'::blob, 'z'::blob)", b=zone(b"b", b"c")) == "none"
    assert verdict("f IN (0.0, 5.0)", f=zone(-0.0, -0.0, nans=0)) == "all"


def test_a_long_list_is_searched_not_scanned() -> None:
    text = f"i IN ({', '.join(str(10 * value) for value in range(5000))})"
    assert verdict(text, i=zone(11, 19)) == "none"
    assert verdict(text, i=zone(11, 20)) == "some"
    assert verdict(text, i=zone(20, 20)) == "all"


@pytest.mark.parametrize(
    ("text", "consulted"),
    [
        ("i % 7 = 3", set()),
        ("i % 7 = 3 AND j > 1", {("j",)}),
        ("NOT (i IN (1, 2) OR j + 1 < i)", {("i",)}),
        ("i + j IS NULL", set()),
        ("s LIKE '%a' OR bo", {("s",), ("bo",)}),
        ("st.a IS NULL", {("st", "a")}),
        ("upper(s) = 'A'", set()),
        ("(i < 3) IS NOT NULL", {("i",)}),
        ("i = j", {("i",), ("j",)}),
    ],
)
def test_columns_whose_statistics_are_consulted(text: str, consulted: set[tuple[str, ...]]) -> None:
    node = parse_sql(text, SCHEMA)
    assert consulted_columns(node) == consulted
    looked_up: set[tuple[str, ...]] = set()

    class Statistics(dict[tuple[str, ...], ColumnStatistics]):
        def get(self, parts: Any, default: Any = None) -> Any:
            looked_up.add(parts)
            return default

    match_zones(node, Statistics(), 1)
    assert looked_up <= consulted
