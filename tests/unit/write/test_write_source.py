"""Batches are fitted to a schema."""

from __future__ import annotations

import pyarrow as pa
import pytest
from lance_engine.errors import SchemaMismatchError
from lance_engine.schema_tree import Schema
from lance_engine.write.source import conform

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


def fit(offered: pa.Table, target: pa.Schema) -> pa.Table:
    return pa.Table.from_batches(conform(offered.to_batches(), Schema.from_arrow(target)))


@pytest.mark.parametrize(
    ("offered", "wanted"),
    [
        (pa.array([1, None], pa.int8()), pa.int64()),
        (pa.array([1, None], pa.int64()), pa.uint8()),
        (pa.array([1.5, None], pa.float32()), pa.float64()),
        (pa.array(["a", None], pa.large_string()), pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.binary_view()), pa.large_binary()),
        (pa.array(["a", None]).dictionary_encode(), pa.string()),
        (pa.array(["a", None]), pa.dictionary(pa.int8(), pa.string())),
        (pa.array(["a", None]).dictionary_encode(), pa.dictionary(pa.int16(), pa.string())),
        (pa.nulls(2), pa.list_(pa.int8())),
        (pa.array([[1], None], pa.list_(pa.int8())), pa.large_list(pa.int32())),
        (pa.array([[1.0, 2.0], None], pa.list_(pa.float64())), pa.list_(pa.float32(), 2)),
        (pa.array([{"x": 1}, None]), pa.struct([("x", pa.int16())])),
        (pa.array([["a"], None], pa.list_(pa.string_view())), pa.list_(pa.string())),
        (pa.array([10**6, None], pa.timestamp("us")), pa.timestamp("ns")),
        (pa.array([1, None], pa.date32()), pa.date64()),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)
def test_values_that_keep_their_meaning_are_cast(offered: pa.Array, wanted: pa.DataType) -> None:
    fitted = fit(pa.table({"c": offered}), pa.schema([("c", wanted)])).column("c")
    assert fitted.type == wanted
    assert fitted.null_count >= 1
    if not pa.types.is_temporal(wanted):
        assert fitted.to_pylist() == offered.to_pylist()


@pytest.mark.parametrize(
    ("offered", "wanted"),
    [
        (pa.array([1]), pa.string()),
        (pa.array(["1"]), pa.int64()),
        (pa.array([1]), pa.float64()),
        (pa.array([300]), pa.int8()),
        (pa.array(["a"]), pa.binary()),
        (pa.array([1], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([1500], pa.timestamp("us")), pa.timestamp("ms")),
        (pa.array([{"x": 1}]), pa.struct([("y", pa.int64())])),
        (pa.array([[1, 2, 3]]), pa.list_(pa.int64(), 2)),
        (pa.array([b"abc"]), pa.binary(4)),
    ],
    ids=lambda value: str(value.type if isinstance(value, pa.Array) else value),
)
def test_other_types_are_refused(offered: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column: c.*Cast the column"):
        fit(pa.table({"c": offered}), pa.schema([("c", wanted)]))


def test_columns_are_found_by_name() -> None:
    target = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())])
    fitted = fit(TABLE.select(["b", "a"]), target)
    assert fitted.schema.equals(target)
    assert fitted.to_pydict() == {**TABLE.to_pydict(), "c": [None] * 3}


def test_names_must_be_unambiguous() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(SchemaMismatchError, match="Duplicate"):
        fit(twice, pa.schema([("a", pa.int64())]))
    with pytest.raises(SchemaMismatchError, match=r"[Cc]olumn 'A' not found"):
        fit(pa.table({"A": [1]}), pa.schema([("a", pa.int64())]))


NO_VALUES = pa.Array.from_buffers(pa.float32(), 0, [None, None])


def _nulls(count: int, values: pa.Array) -> pa.Array:
    """Null lists from another process, which sends no buffers of values that do not exist."""
    valid, offsets = pa.py_buffer(b"\0"), pa.py_buffer(b"\0" * 4 * (count + 1))
    return pa.Array.from_buffers(
        pa.list_(values.type), count, [valid, offsets], children=[values], null_count=count
    )


@pytest.mark.parametrize(
    ("offered", "wanted"),
    [
        (_nulls(2, NO_VALUES), pa.list_(pa.float32(), 3)),
        (
            pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), _nulls(2, NO_VALUES)),
            pa.list_(pa.list_(pa.float32(), 3)),
        ),
        (
            pa.StructArray.from_arrays([_nulls(1, NO_VALUES)], names=["v"]),
            pa.struct([("v", pa.list_(pa.float32(), 3))]),
        ),
    ],
)
def test_null_lists_without_values_become_fixed_size_lists(offered: pa.Array, wanted: pa.DataType) -> None:
    """Arrow's own cast crashes the process."""
    found = fit(pa.table({"v": offered}), pa.schema([("v", wanted)]))
    assert found["v"].to_pylist() == offered.to_pylist()
    found["v"].validate(full=True)
