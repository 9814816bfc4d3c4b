"""What is said of types and single values where the type is at the edge of what it may be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from lance_engine.expr import literal_text
from lance_engine.expr.alike import fitted
from lance_engine.expr.convert import convert
from lance_engine.expr.tree import Literal
from lance_engine.expr.value_types import decimal_type, has_zone

ZONED, LOCAL = pa.timestamp("us", "UTC"), pa.timestamp("us")


@pytest.mark.parametrize(
    ("kind", "zoned"),
    [
        (ZONED, True),
        (LOCAL, False),
        (pa.int64(), False),
        (pa.list_(ZONED), True),
        (pa.list_(LOCAL), False),
        (pa.struct([("a", pa.int8()), ("b", pa.list_(pa.struct([("c", ZONED)])))]), True),
        (pa.struct([("a", pa.int8()), ("b", LOCAL)]), False),
    ],
)
def test_types_with_a_time_zone(kind: pa.DataType, zoned: bool) -> None:
    assert has_zone(kind) is zoned


def test_decimals_are_as_narrow_as_their_digits() -> None:
    assert decimal_type(38, 4) == pa.decimal128(38, 4)
    assert decimal_type(39, 4) == pa.decimal256(39, 4)
    assert decimal_type(80, 4) == pa.decimal256(76, 4)


def test_zeros_have_no_sign() -> None:
    for kind in (pa.float32(), pa.float64()):
        assert literal_text(pa.scalar(-0.0, kind)) == literal_text(pa.scalar(0.0, kind)) == "0.0"


def test_structs_are_converted_by_names() -> None:
    rows = pa.array([{"b": 1, "a": 2}, None], pa.struct([("b", pa.int8()), ("a", pa.int16())]))
    target = pa.struct([("a", pa.int64()), ("b", pa.float64())])
    assert convert(rows, target).to_pylist() == [{"a": 2, "b": 1.0}, None]


@pytest.mark.parametrize(
    ("value", "kind", "fits"),
    [
        ([1, 2], pa.list_(pa.int8(), 2), True),
        ([1, 2, 3], pa.list_(pa.int8(), 2), False),
        ([1, 2, 3], pa.list_(pa.int8()), True),
        ([1, 300], pa.list_(pa.int8()), False),
        ([1, 300], pa.list_(pa.int8(), 1), False),
        ([], pa.list_(pa.int8(), 2), False),
        ([[1], [300]], pa.list_(pa.list_(pa.int8())), False),
    ],
)
def test_a_constant_list_fits_if_each_item_and_their_number_do(
    value: list[Any], kind: pa.DataType, fits: bool
) -> None:
    found = fitted(Literal(pa.scalar(value)), kind)
    assert (found is not None) == fits
    if found is not None:
        assert found.type == kind
        assert found.value.as_py() == value
