"""Spark's filter objects as trees; classes with the names and members of pyspark's stand in for them."""

from __future__ import annotations

import dataclasses
import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, InvalidFilterError
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.from_spark import from_spark
from lance_engine.expr.from_sql import parse_sql

SCHEMA = pa.schema(
    {
        "i": pa.int32(),
        "u": pa.uint8(),
        "f": pa.float32(),
        "d": pa.decimal128(9, 2),
        "s": pa.string(),
        "b": pa.binary(),
        "bo": pa.bool_(),
        "day": pa.date32(),
        "ts": pa.timestamp("us", "UTC"),
        "ntz": pa.timestamp("ms"),
        "ns": pa.timestamp("ns"),
        "st": pa.struct([pa.field("a", pa.int64())]),
    }
)


def make(name: str, attribute: tuple[str, ...], *value: Any) -> Any:
    """A frozen dataclass like those of pyspark.sql.datasource."""
    members = ["attribute", "value"][: 1 + len(value)]
    return dataclasses.make_dataclass(name, members, frozen=True)(attribute, *value)


def negated(child: Any) -> Any:
    return dataclasses.make_dataclass("Not", ["child"], frozen=True)(child)


NOON = datetime.datetime(2020, 1, 1, 12)
CASES = [
    (make("EqualTo", ("i",), 5), "i = 5"),
    (make("EqualTo", ("i",), None), "NULL"),
    (make("EqualNullSafe", ("i",), 5), "i IS NOT NULL AND i = 5"),
    (make("EqualNullSafe", ("i",), None), "i IS NULL"),
    (make("GreaterThan", ("u",), 300), "u <> u"),
    (make("GreaterThanOrEqual", ("f",), 0.5), "f >= 0.5"),
    (make("LessThan", ("d",), Decimal("1.00")), "d < 1.00"),
    (make("LessThanOrEqual", ("s",), "it's"), "s <= 'it''s'"),
    (make("In", ("i",), (1, 2, None)), "i IN (1, 2, NULL)"),
    (make("In", ("s",), ("a", "b")), "s IN ('a', 'b')"),
    (make("IsNull", ("st",)), "st IS NULL"),
    (make("IsNotNull", ("st", "a")), "st.a IS NOT NULL"),
    (make("EqualTo", ("bo",), True), "bo = TRUE"),
    (make("EqualTo", ("b",), b"\x01"), "b = CAST('\\x01' AS BLOB)"),
    (make("StringStartsWith", ("s",), "50%"), "starts_with(s, '50%')"),
    (make("StringEndsWith", ("s",), "x"), "ends_with(s, 'x')"),
    (make("StringContains", ("s",), "x"), "contains(s, 'x')"),
    (make("GreaterThan", ("day",), datetime.date(2020, 1, 1)), "day > DATE '2020-01-01'"),
    (make("LessThan", ("ntz",), NOON), "ntz < TIMESTAMP '2020-01-01 12:00:00'"),
    (
        make("LessThan", ("ts",), NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))),
        "ts < TIMESTAMPTZ '2020-01-01 10:00:00+00'",
    ),
    (negated(make("LessThan", ("i",), 5)), "i >= 5"),
    (negated(make("In", ("i",), (1, 2))), "i NOT IN (1, 2)"),
    (negated(make("IsNull", ("i",))), "i IS NOT NULL"),
]


@pytest.mark.parametrize(("filter", "text"), CASES, ids=[text for _, text in CASES])
def test_filters(filter: Any, text: str) -> None:
    node = from_spark(filter, SCHEMA)
    assert str(node) == text
    assert node == parse_sql(text, SCHEMA)
    assert len(evaluate(node, _empty())) == 0


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in SCHEMA], schema=SCHEMA)


def test_what_stays_with_spark() -> None:
    for filter in (
        make("Frobnicate", ("i",), 1),
        make("EqualTo", ("ns",), NOON),
        make("EqualTo", ("s",), 5),
        object(),
    ):
        with pytest.raises(InvalidFilterError):
            from_spark(filter, SCHEMA)
    with pytest.raises(ColumnNotFoundError):
        from_spark(make("EqualTo", ("nope",), 1), SCHEMA)
