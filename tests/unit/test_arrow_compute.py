"""Functions that are called without `pyarrow.compute`, against the same calls of that module."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest
from lance_engine.arrow_compute import pc

NUMBERS = pa.array([3, None, 1, 2], pa.int32())
FLOATS = pa.array([0.5, float("nan"), None, -0.0])
TEXTS = pa.array(["ab", None, "b", "%"])
FLAGS = pa.array([True, False, None, True])
MASK = pa.array([True, False, True, True])
BATCH = pa.record_batch({"number": NUMBERS, "text": TEXTS})
FUNCTIONS = pyarrow.compute.__dict__

CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("less", (NUMBERS, 2), {}),
    ("less_equal", (NUMBERS, pa.scalar(2, pa.int32())), {}),
    ("equal", (TEXTS, "b"), {}),
    ("equal", (pa.chunked_array([NUMBERS, NUMBERS]), 3), {}),
    ("and_", (FLAGS, MASK), {}),
    ("or_", (FLAGS, True), {}),
    ("and_kleene", (FLAGS, False), {}),
    ("invert", (FLAGS,), {}),
    ("is_nan", (FLOATS,), {}),
    ("is_null", (FLOATS,), {}),
    ("is_null", (FLOATS,), {"nan_is_null": True}),
    ("is_valid", (NUMBERS,), {}),
    ("if_else", (FLAGS, NUMBERS, pa.scalar(None, pa.int32())), {}),
    ("filter", (NUMBERS, MASK), {}),
    ("filter", (BATCH, FLAGS), {}),
    ("filter", (NUMBERS, FLAGS, "emit_null"), {}),
    ("take", (TEXTS, pa.array([2, None, 0])), {}),
    ("drop_null", (TEXTS,), {}),
    ("unique", (FLAGS,), {}),
    ("fill_null", (NUMBERS, 7), {}),
    ("fill_null", (NUMBERS, pa.scalar(7)), {}),
    ("fill_null", (FLAGS, False), {}),
    ("fill_null", (pa.array([True, None, False] * 50).slice(5, 131), False), {}),
    ("fill_null", (pa.array([None] * 9, pa.bool_()), False), {}),
    ("index", (FLAGS, False), {}),
    ("index", (NUMBERS, pa.scalar(2)), {}),
    ("indices_nonzero", (FLAGS,), {}),
    ("cast", (NUMBERS, pa.float64()), {}),
    ("cast", (NUMBERS, "string"), {}),
    ("cast", (FLOATS, pa.int8(), False), {}),
    ("coalesce", (NUMBERS, NUMBERS, 0), {}),
    ("is_in", (NUMBERS,), {"value_set": pa.array([1, 3], pa.int32())}),
    ("is_in", (NUMBERS, pa.array([None, 3], pa.int32())), {"skip_nulls": True}),
    ("min_max", (NUMBERS,), {}),
    ("min_max", (NUMBERS,), {"skip_nulls": False}),
    ("match_like", (TEXTS, "%b"), {}),
    ("match_like", (TEXTS, "A_"), {"ignore_case": True}),
    ("starts_with", (TEXTS, "a"), {}),
    ("match_substring", (TEXTS,), {"pattern": "%"}),
    ("round", (FLOATS, 1), {"round_mode": "down"}),
    ("sort_indices", (NUMBERS,), {"sort_keys": [("", "descending")]}),
    ("binary_join_element_wise", (TEXTS, TEXTS, "-"), {}),
    ("list_value_length", (pa.array([[1], None, []]),), {}),
]  # fmt: skip


def _ids() -> list[str]:
    return [f"{name}-{number}" for number, (name, _, _) in enumerate(CALLS)]


@pytest.mark.parametrize(("name", "arguments", "options"), CALLS, ids=_ids())
def test_results_are_those_of_the_module(
    name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    found = getattr(pc, name)(*arguments, **options)
    expected = FUNCTIONS[name](*arguments, **options)
    assert found.type == expected.type if hasattr(expected, "type") else found.schema == expected.schema
    assert str(found.to_pylist() if hasattr(found, "to_pylist") else found) == str(
        expected.to_pylist() if hasattr(expected, "to_pylist") else expected
    )


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("cast", (pa.array([300]), pa.int8())),
        ("take", (NUMBERS, pa.array([9]))),
        ("less", (NUMBERS, TEXTS)),
        ("less", (NUMBERS,)),
        ("filter", (NUMBERS, NUMBERS)),
        ("match_like", (TEXTS,)),
        ("no_such_function", (NUMBERS,)),
    ],
)
def test_errors_are_those_of_the_module(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011 - compared below
        getattr(pyarrow.compute, name)(*arguments)
    with pytest.raises(type(expected.value)) as found:
        getattr(pc, name)(*arguments)
    assert type(found.value) is type(expected.value)


def test_expressions_and_classes() -> None:
    field = pc.field("number")
    assert isinstance(field, pc.Expression)
    assert str(pc.less(field, 3)) == str(pyarrow.compute.less(pyarrow.compute.field("number"), 3))
    assert pc.is_null(field).equals(pyarrow.compute.is_null(field))
    assert pc.CastOptions is pyarrow.compute.CastOptions


def test_arrays_of_numpy() -> None:
    assert pc.equal(np.arange(3), pa.array([0, 5, 2])).to_pylist() == [True, False, True]
