"""Functions of filters at the values where a slip would show."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import json_functions, nested, render, text_functions, total_order
from lance_engine.expr.build import substituted
from lance_engine.expr.coerce import duration_scalar
from lance_engine.expr.decimal_division import divide
from lance_engine.expr.evaluate import evaluate, evaluate_value
from lance_engine.expr.from_sql import parse_sql, parse_value
from lance_engine.expr.statistics import ColumnStatistics, match_zones
from lance_engine.expr.tree import Cast, Column, Comparison, Literal

FLOAT = pa.float64()


def test_quotes_within_strings_are_doubled() -> None:
    assert render.string("it's") == "'it''s'"
    assert render.string("''") == "''''''"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.decimal128(38, 1), "1.5"),
        (pa.decimal256(39, 1), "CAST('1.5' AS DECIMAL(39, 1))"),
    ],
)
def test_decimals_with_more_digits_than_a_constant_has_are_cast(kind: pa.DataType, text: str) -> None:
    assert render.literal(pa.scalar(Decimal("1.5"), kind)) == text


def test_the_quotient_of_two_constants_is_one_value() -> None:
    left, right = pa.scalar(Decimal("7.5")), pa.scalar(Decimal("2.0"))
    assert divide("/", left, right, pa.decimal128(9, 2)).to_pylist() == [Decimal("3.75")]


def test_constants_replace_columns_within_casts() -> None:
    column, constant = Column(("a",), pa.int64()), Literal(pa.scalar(3))
    node = Comparison("<", Cast(column, FLOAT), Literal(pa.scalar(3.5)))
    assert substituted(node, column, constant) == Comparison(
        "<", Cast(constant, FLOAT), Literal(pa.scalar(3.5))
    )


def test_bytes_and_texts_are_joined_by_their_own_functions() -> None:
    joined = text_functions.concatenated(pa.array([b"a", None]), pa.scalar(b"\xff"))
    assert joined.to_pylist() == [b"a\xff", None]
    assert text_functions.concatenated(pa.array(["a"]), pa.array([3])).to_pylist() == ["a3"]


@pytest.mark.parametrize(
    ("function", "text", "key", "expected"),
    [
        ("json_get_bool", '{"a": true}', "a", True),
        ("json_get_bool", '{"a": "false"}', "a", False),
        ("json_extract", '{"a": {"b": 1}}', "$.a.b", "1"),
        ("json_extract", '{"a": {"b": 1}}', "$.b", None),
        ("json_extract", '{"a": [1, 2]}', "$.a.b", None),
    ],
)
def test_values_within_json(function: str, text: str, key: str, expected: Any) -> None:
    assert json_functions.FUNCTIONS[function](pa.array([text]), pa.scalar(key)).to_pylist() == [expected]


def test_paths_of_json_are_constants_and_booleans_are_not_guessed() -> None:
    with pytest.raises(InvalidFilterError, match=r"The path of a JSON function must be a constant"):
        json_functions.json_extract(pa.array(["{}"]), pa.array(["$.a"]))
    with pytest.raises(InvalidFilterError, match="not a boolean"):
        json_functions.FUNCTIONS["json_get_bool"](pa.array(['{"a": 1}']), pa.scalar("a"))


BATCH = pa.record_batch(
    {
        "x": pa.array([1.5, None, float("nan"), 0.0]),
        "l": pa.array([[1, 2], None, [], [2]]),
        "day": pa.array([10_000, None, 0, 365], pa.date32()),
        "st": pa.array([{"a": 1}, None, {"a": 2}, {"a": None}]),
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x <= 'nan'", [True, None, True, True]),
        ("x > 'nan'", [False, None, False, False]),
        ("array_has(l, 1.5)", [False, None, False, False]),
        ("array_has(l, 2)", [True, None, False, True]),
        ("extract(year FROM day) = 1971", [False, None, False, True]),
        ("date '1970-01-02' - day > 0", [False, None, True, False]),
    ],
)
def test_filters(text: str, expected: list[bool | None]) -> None:
    assert evaluate(parse_sql(text, BATCH.schema), BATCH).to_pylist() == expected


def test_a_difference_of_constant_dates_is_no_shift() -> None:
    node = parse_value("date '2020-01-03' - date '2020-01-01'", BATCH.schema)
    assert set(evaluate_value(node, BATCH).to_pylist()) == {2}


def test_two_constants_of_nested_types_compare_to_one_value() -> None:
    left, right = (pa.scalar({"a": number, "b": 0}) for number in (1, 2))
    assert nested.FUNCTIONS["nested_less"](left, right).to_pylist() == [True]
    several = pa.array([{"a": 1, "b": 1}, {"a": 3, "b": 1}, None])
    assert nested.FUNCTIONS["nested_less"](several, right).to_pylist() == [True, False, None]


def test_durations_of_whole_microseconds_have_no_more_digits() -> None:
    assert duration_scalar(5000) == pa.scalar(5, pa.duration("us"))


def test_the_order_of_signed_zeros_is_not_known_from_bounds() -> None:
    # Values of a are not less than those of b, but for -0.0 and 0.0, which bounds do not tell apart.
    columns = [Column((name,), FLOAT) for name in "ab"]
    statistics = {("a",): _bounded(0, 1), ("b",): _bounded(-1, 0)}
    for total, all_match in ((False, True), (True, False)):
        node = Comparison(">=", columns[0], columns[1], total)
        may, must = match_zones(node, statistics, 1)
        assert (may.tolist(), must.tolist()) == ([True], [all_match])


def _bounded(low: float, high: float) -> ColumnStatistics:
    none = np.array([0])
    bounds = (pa.array([bound], FLOAT) for bound in (low, high))
    return ColumnStatistics.from_counts(np.array([10]), *bounds, none, none)


def test_nan_among_constants_has_its_place_in_the_total_order() -> None:
    column = Column(("x",), FLOAT)
    for value, op, expected in ((float("nan"), "=", True), (1.0, "=", False), (1.0, "<", True)):
        node = total_order.in_total_order(Comparison(op, column, Literal(pa.scalar(value))))
        assert total_order.tells_nan_apart(node) is expected


def test_nan_with_a_sign() -> None:
    values = pa.array([float("nan"), -float("nan"), None, -1.0])
    assert total_order.is_negative_nan(values).to_pylist() == [False, True, False, False]


_TEXTS = pa.record_batch(
    {"s": ["1", "x", None, "30"], "q": pa.array([None, 7, None, 9]), "f": [1.0, float("nan"), 2.5, None]}
)


@pytest.mark.parametrize(
    ("text", "passing"),
    [
        ("s <> 'x' AND CAST(s AS INT) > 3", [False, False, None, True]),
        ("s = 'x' OR CAST(s AS INT) > 3", [False, True, None, True]),
        ("s IS NULL OR s = 'x' OR CAST(s AS INT) > 3", [False, True, True, True]),
        ("NOT (s = 'x' OR CAST(s AS INT) > 3)", [True, False, None, False]),
        ("coalesce(q, CAST(f AS DECIMAL(10, 2))) > 2", [False, True, True, True]),
        ("coalesce(q, CAST(f AS DECIMAL(10, 2)), 0) IS NULL", [False, False, False, False]),
    ],
)
def test_what_is_not_needed_for_a_row_may_fail_there(text: str, passing: list[bool | None]) -> None:
    assert evaluate(parse_sql(text, _TEXTS.schema), _TEXTS).to_pylist() == passing


@pytest.mark.parametrize(
    "text", ["s <> '1' AND CAST(s AS INT) > 3", "coalesce(CAST(f AS DECIMAL(10, 2)), q) > 2"]
)
def test_what_is_needed_for_a_row_may_not_fail_there(text: str) -> None:
    with pytest.raises(InvalidFilterError, match="Cannot evaluate the filter"):
        evaluate(parse_sql(text, _TEXTS.schema), _TEXTS)
