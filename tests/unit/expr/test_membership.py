"""Numbers in long lists, which are hashed once for all batches."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.expr import membership
from lance_engine.expr.evaluate import evaluate
from lance_engine.expr.tree import Column, In

COUNT = 1000


def numbers(kind):
    return lambda values: pa.array(np.asarray(values, np.int64)).cast(kind)


def texts(kind):
    return lambda values: pa.array([f"text {value}" for value in values], pa.string()).cast(kind)


MAKERS = {
    "int8": lambda values: pa.array([value % 100 for value in values], pa.int8()),
    "int64": numbers(pa.int64()),
    "uint16": numbers(pa.uint16()),
    "float": numbers(pa.float32()),
    "double": numbers(pa.float64()),
    "halffloat": lambda values: pa.array(np.asarray(values, np.float16)),
    "date32": lambda values: numbers(pa.int32())(values).cast(pa.date32()),
    "timestamp": numbers(pa.timestamp("us", "UTC")),
    "decimal": lambda values: numbers(pa.int64())(values).cast(pa.decimal128(25, 2)),
    "string": texts(pa.string()),
    "large_string": texts(pa.large_string()),
    "binary": texts(pa.binary()),
    "fixed": lambda values: pa.array([f"{value:06}".encode() for value in values], pa.binary(6)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_long_lists_have_the_members_that_pyarrow_finds(kind, monkeypatch):
    monkeypatch.setattr("lance_engine.expr.evaluate.MANY", 20)
    make = MAKERS[kind]
    held = make([3 * value for value in range(COUNT)]).unique()
    values = make([(7 * value) % (4 * COUNT) for value in range(COUNT)])
    values = pa.concat_arrays([values, pa.nulls(3, values.type), values]).slice(5, COUNT + 100)
    node = In(Column(("a",), values.type), held)
    for begin in (0, 1, 300, len(values)):
        part = values.slice(begin)
        wide = (lambda array: array.cast(pa.float32())) if kind == "halffloat" else (lambda array: array)
        expected = pc.if_else(part.is_valid(), pc.is_in(wide(part), value_set=wide(held)), None)
        assert evaluate(node, pa.record_batch({"a": part})).equals(expected)


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_zero_has_no_sign_and_nan_is_nan(kind):
    rest = [float(value) for value in range(1, 1 + membership.MANY)]
    values = pa.array([0.0, -0.0, math.nan, -math.nan, None, 0.5], kind)
    for zero in (0.0, -0.0):
        node = In(Column(("a",), kind), pa.array([zero, math.nan, *rest], kind))
        found = evaluate(node, pa.record_batch({"a": values}))
        assert found.to_pylist() == [True, True, True, True, None, False]


def test_a_list_is_hashed_once(monkeypatch):
    made = []
    monkeypatch.setattr(
        membership, "_prepare", lambda held, prepare=membership._prepare: made.append(held) or prepare(held)
    )
    monkeypatch.setattr(pc, "is_in", None)
    values = MAKERS["int64"](range(COUNT))
    node = In(Column(("a",), values.type), values)
    for begin in range(0, COUNT, 100):
        assert evaluate(node, pa.record_batch({"a": values.slice(begin, 100)})).true_count == 100
    assert len(made) == 1
