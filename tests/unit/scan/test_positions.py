"""Rows by position: counted over live rows, in scan order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import InvalidArgumentError, LanceError, PositionOutOfRangeError, RowNotFoundError
from lance_engine.metrics import ScanMetrics

import lance_sql


@pytest.fixture(params=[False, True], ids=["addresses", "stable_ids"])
def dataset(request, tmp_path):
    """Fragments with many, no and all rows deleted, one of them rewritten."""
    table = pa.table({"id": range(200), "name": [f"n{row}" for row in range(200)]})
    made = lance_sql.write(table, tmp_path / "x.lance", max_rows_per_file=40, stable_row_ids=request.param)
    made.delete("id < 40 AND id % 3 <> 1")
    lance_sql.open(tmp_path / "x.lance").delete("id >= 80 AND id < 120")
    lance_sql.open(tmp_path / "x.lance").delete("id IN (120, 121, 159, 161)")
    return lance_sql.open(tmp_path / "x.lance")


def test_positions_are_those_of_a_scan(dataset):
    scanned = dataset.to_table()
    assert len(dataset) == scanned.num_rows == 13 + 40 + 37 + 39
    assert dataset.take_positions(range(len(dataset))).equals(scanned)
    chosen = np.random.default_rng(5).integers(0, len(dataset), 300)  # repeated, in no order
    assert dataset.take_positions(chosen).equals(scanned.take(chosen))
    assert dataset.take_positions(pa.array([3, 1]), ["name"])["name"].to_pylist() == ["n10", "n4"]
    assert dataset.take_positions([]).num_rows == 0


def test_subscripts(dataset):
    rows = dataset.to_table().to_pylist()
    assert dataset[0] == rows[0] == {"id": 1, "name": "n1"}
    assert dataset[np.int64(20)] == rows[20]
    assert dataset[-1] == rows[-1]
    assert dataset[[50, 13, 13]].to_pylist() == [rows[50], rows[13], rows[13]]
    for part in (
        slice(10, 60),
        slice(None, 5),
        slice(-3, None),
        slice(None, None, 7),
        slice(9, 2, -2),
        slice(4, 2),
    ):
        assert dataset[part].to_pylist() == rows[part], part
    assert list(dataset) == rows


def test_a_dataset_without_rows(tmp_path):
    dataset = lance_sql.write(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "x.lance")
    assert len(dataset) == 0
    assert list(dataset) == []
    assert dataset, "truth does not ask for rows"
    with pytest.raises(IndexError, match="Position 0 is out of range: the dataset has 0 rows"):
        dataset[0]


def test_positions_that_are_none(dataset):
    for beyond in (129, -130):
        with pytest.raises(PositionOutOfRangeError, match=f"Position {beyond:,} is out of range.*129 rows"):
            dataset[beyond]
    with pytest.raises(IndexError, match="Position 2000"):
        dataset.take_positions([0, 2000])
    for wrong in ([-1], [0.5], ["a"], "id", None, [True, False], [[1], [2]], [[1], [2, 3]], [None]):
        with pytest.raises(InvalidArgumentError, match=r"Positions must be .*take\(\) reads rows by row id"):
            dataset.take_positions(wrong)


@pytest.mark.parametrize(
    "wrong", [[-1], [1.5], np.array([-1]), np.array([2.0]), ["a"], [2**64], 5, [True], [None], [[1], [2, 3]]]
)
@pytest.mark.parametrize("missing", ["error", "skip"])
def test_row_ids_that_are_none(dataset, wrong, missing):
    with pytest.raises(InvalidArgumentError, match=r"Row ids must be .*take_positions\(\)") as caught:
        dataset.take(wrong, missing=missing)
    assert isinstance(caught.value, LanceError)


def test_large_row_ids_are_exact(dataset):
    """2 ** 63 and a small number have no common type of whole numbers in numpy."""
    with pytest.raises(RowNotFoundError, match=r"9223372036854775809.*take_positions"):
        dataset.take([1, 2**63 + 1])
    assert dataset.take([1, 2**63 + 1], missing="skip").num_rows == 1


def test_only_what_is_asked_for_is_read(dataset):
    metrics = ScanMetrics()
    assert dataset.take_positions([0, 128], ["id"], metrics=metrics)["id"].to_pylist() == [1, 199]
    assert metrics.rows_out == 2


@pytest.mark.parametrize("columns", [[1], [None], [["id"]], [{"id": 1}], [b"id"]])
def test_columns_that_are_no_names_are_refused(dataset, columns):
    with pytest.raises(InvalidArgumentError, match="columns must be names of columns, but one is"):
        dataset.scan(columns=columns)
