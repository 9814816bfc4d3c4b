"""Sorting for row indices: nulls first, NaN last, and the same answer with and without temporary files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.index.order import ExternalSorter, equal_runs, merged, sort_key, sorted_by_value

NAN = math.nan


def entries(values: list[Any], kind: pa.DataType, first: int = 0) -> pa.RecordBatch:
    rows = pa.array(range(first, first + len(values)), pa.uint64())
    return pa.RecordBatch.from_arrays([pa.array(values, kind), rows], ["value", "row"])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([None, -math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, NAN], pa.float64()),
        ([None, -1.5, -0.0, 0.0, 2.0, NAN], pa.float32()),
        ([None, -1.5, 0.0, 2.0, NAN], pa.float16()),
        ([None, -3, 0, 7], pa.int8()),
        ([None, 0, 2**64 - 1], pa.uint64()),
        ([None, False, True], pa.bool_()),
        ([None, "", "a", "ab", "é", "\U0010ffff"], pa.string()),
        ([None, b"", b"\x00", b"\xff"], pa.large_binary()),
        ([None, b"ab", b"b\x00"], pa.binary(2)),
        ([None, -5, 3], pa.timestamp("ns")),
        ([None, 1, 9], pa.duration("s")),
    ],
)
def test_values_are_put_in_order(values: list[Any], kind: pa.DataType) -> None:
    mixed = entries(values[::-1] * 2, kind)
    found = sorted_by_value(mixed)
    expected = entries([value for value in values for _ in range(2)], kind).column(0)
    assert str(found.column(0)) == str(expected)
    assert [end - begin for begin, end in equal_runs(found.column(0))] == [2] * len(values)
    # Equal values keep the order of their rows.
    rows = found.column(1).to_numpy().reshape(-1, 2)
    assert (rows[:, 0] < rows[:, 1]).all()


def test_few_distinct_strings_are_sorted_by_their_ranks() -> None:
    batch = entries(["b", None, "a", "c"] * 500, pa.string())
    found = sorted_by_value(batch)
    assert found.column(0).to_pylist() == [None] * 500 + ["a"] * 500 + ["b"] * 500 + ["c"] * 500
    assert found.column(1).to_pylist()[:3] == [1, 5, 9]


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
def test_what_does_not_fit_into_memory_goes_through_files(kind: pa.DataType) -> None:
    rng = np.random.default_rng(3)
    numbers = [None if rng.random() < 0.1 else int(value) for value in rng.integers(0, 4000, 30_000)]
    values = [None if n is None else str(n) if kind == pa.string() else n for n in numbers]
    batches = [entries(values[start : start + 1000], kind, start) for start in range(0, 30_000, 1000)]
    with ExternalSorter(1 << 30) as held, ExternalSorter(1 << 18) as spilling:
        for batch in batches:
            held.add(batch)
            spilling.add(batch)
        assert held.spilled_files == 0
        assert spilling.spilled_files > 3
        expected = pa.Table.from_batches(held.sorted()).combine_chunks()
        found = pa.Table.from_batches(spilling.sorted()).combine_chunks()
    assert found.equals(expected)
    assert len(list(equal_runs(found["value"].chunk(0)))) == len(set(numbers))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_damaged_strings_are_merged(kind: pa.DataType) -> None:
    """Strings that a damaged index holds are put in order as bytes, though they are not UTF-8."""
    values = [[b"a", b"\xff\xfe"], [b"b", b"\xff"], [None, b"\xc3\xa9"]]
    as_bytes = pa.binary() if kind == pa.string() else pa.large_binary()
    streams = [
        iter([pa.record_batch({"value": pa.array(some, as_bytes).view(kind), "row": [2 * i, 2 * i + 1]})])
        for i, some in enumerate(values)
    ]
    found = pa.Table.from_batches(merged(streams))
    expected = [None, b"a", b"b", b"\xc3\xa9", b"\xff", b"\xff\xfe"]
    assert found["value"].combine_chunks().view(as_bytes).to_pylist() == expected
    assert found["row"].to_pylist() == [4, 0, 2, 5, 3, 1]


def test_streams_are_merged() -> None:
    runs = [[None, 1, 4], [], [None, None], [2, 4, 4, 9]]
    streams = [iter([entries(run, pa.int32(), 10 * number)]) for number, run in enumerate(runs)]
    found = pa.Table.from_batches(merged(streams))
    assert found["value"].to_pylist() == [None, None, None, 1, 2, 4, 4, 4, 9]
    assert found["row"].to_pylist() == [0, 20, 21, 1, 30, 2, 31, 32, 33]


def test_keys_have_no_nan() -> None:
    key = sort_key(pa.array([NAN, None, -NAN, 1.0]))
    assert key.null_count == 1
    assert key[0].as_py() == key[2].as_py() == 2**64 - 1
