"""Arrow values made of bytes: the same as pyarrow makes."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from lance_engine.arrow_values import array, false_for_null, of_numpy, scalar, to_numpy

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 64), 1 << 65),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=True),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(datetime.UTC)),
    st.times(),
    st.timedeltas(),
)
TYPES = [
    None,
    pa.bool_(),
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.large_string(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", tz="UTC"),
    pa.decimal128(10, 2),
    pa.decimal128(38, 10),
    pa.time64("us"),
    pa.null(),
]


def outcome(make: Any, *arguments: Any) -> Any:
    """The result, or the kind of the error."""
    try:
        return make(*arguments)
    except Exception as error:
        return type(error)


@given(VALUES, st.sampled_from(TYPES))
def test_scalars(value: object, kind: pa.DataType | None) -> None:
    ours, arrows = outcome(scalar, value, kind), outcome(pa.scalar, value, kind)
    if isinstance(arrows, pa.Scalar):
        assert ours.type == arrows.type
        assert ours.equals(arrows) or str(ours) == str(arrows) == "nan"
        ours.validate(full=True)
    else:
        assert ours is arrows


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int32(), [1, -5, 7]),
        (pa.float64(), [1.5, -0.0]),
        (pa.string(), ["a", "", "größe"]),
        (pa.bool_(), [True, False] * 9),
        (pa.decimal128(5, 2), [decimal.Decimal("1.5"), decimal.Decimal("-12")]),
        (pa.int64(), [1, None]),
        (pa.float64(), [1, 2.5]),
        (pa.date32(), [datetime.date(1960, 2, 29)]),
        (pa.string(), []),
    ],
)
def test_arrays(kind: pa.DataType, values: list[Any]) -> None:
    expected = pa.array(values, kind)
    for given_values in (values, list(expected)):
        made = array(given_values, kind)
        made.validate(full=True)
        assert made.equals(expected)


@pytest.mark.parametrize("dtype", ["?", "b", "h", "i", "q", "B", "H", "I", "Q", "f", "d"])
@pytest.mark.parametrize("length", [0, 1, 8, 77])
def test_numpy_both_ways(dtype: str, length: int) -> None:
    numbers = (np.arange(2 * length) % 3).astype(dtype)
    for values in (numbers[:length], numbers[::2]):
        made = of_numpy(values)
        made.validate(full=True)
        assert made.equals(pa.array(values))
        for part in (made, made.slice(length // 2), made.slice(0, length // 3)):
            expected = part.to_numpy(zero_copy_only=False)
            found = to_numpy(part)
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)


def test_nulls_to_numpy() -> None:
    values = pa.array([1, None, 3])
    assert np.array_equal(to_numpy(values), values.to_numpy(zero_copy_only=False), equal_nan=True)


@pytest.mark.parametrize(
    "mask",
    [
        pa.array([True, False], pa.bool_()),
        pa.array([None] * 9, pa.bool_()),
        pa.array([True, None, False] * 50).slice(5, 131),
        pa.array([], pa.bool_()),
    ],
)
def test_a_mask_is_false_where_it_is_null(mask: pa.BooleanArray) -> None:
    assert false_for_null(mask).equals(pc.fill_null(mask, False))
