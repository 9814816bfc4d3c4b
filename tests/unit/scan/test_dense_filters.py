"""Rows that a filter leaves of a range, where these are many: decoded as a range, not one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.scan.execute import PieceReader
from lance_engine.scan.filter import Passing
from lance_engine.scan.selection import Selection
from lance_engine.write.dataset import write_dataset

ROWS = 30_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "number": numbers,
            "other": [number * 7919 % ROWS for number in numbers],
            "word": [("few", "some", "many")[number % 3] for number in numbers],
            "text": [None if number % 5 == 0 else f"text {number}" for number in numbers],
            "items": [[number] * (number % 3) for number in numbers],
            "pair": [{"a": number, "b": str(number)} for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def dataset(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    path = str(tmp_path_factory.mktemp("dense") / "t.lance")
    written = DatasetVersion(write_dataset(table, path, max_rows_per_file=20_000))
    return written.delete("number IN (3, 4000, 25000)")


@pytest.mark.parametrize("columns", [["number"], ["text", "word"], ["items", "pair", "other"], ["_rowid"]])
@pytest.mark.parametrize("batch_size", [None, 777])
def test_rows_are_not_numbered_where_most_pass(
    table: pa.Table,
    dataset: DatasetVersion,
    columns: list[str],
    batch_size: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Selection, "where", _unexpected)
    found = dataset.scan(columns, "number > other OR word <> 'few'", batch_size=batch_size).to_table()
    live = table.append_column(
        "_rowid", pa.array([row + (row // 20_000) * (2**32 - 20_000) for row in range(ROWS)], pa.uint64())
    )
    live = live.filter(~pc.field("number").isin([3, 4000, 25000]))
    wanted = live.filter((pc.field("number") > pc.field("other")) | (pc.field("word") != "few"))
    assert found.to_pylist() == wanted.select(columns).to_pylist()


def test_few_rows_are_picked(dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = dataset.scan(["text"], "number % 100 = 7")
    assert scan.to_table().num_rows == ROWS // 100
    assert scan.metrics is not None
    assert scan.metrics.rows_decoded < 2 * ROWS
    monkeypatch.setattr(Selection, "where", _unexpected)
    with pytest.raises(AssertionError):
        dataset.scan(["text"], "number % 100 = 7").to_table()


def test_numbers_are_dropped_while_decoding_where_one_in_a_hundred_passes(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = DatasetVersion(write_dataset(table, str(tmp_path / "t.lance")))
    wanted = table["other"].filter(pc.equal(pc.bit_wise_and(table["number"], 63), 7)).to_pylist()
    for condition, rows in (
        ("number % 100 = 7", table["other"].to_pylist()[7::100]),
        ("number % 64 = 7", wanted),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Selection, "where", _unexpected)
            assert dataset.scan(["other"], condition).to_table()["other"].to_pylist() == rows
    # Too few for that: these are picked.
    assert (
        dataset.scan(["other"], "number % 1000 = 7").to_table()["other"].to_pylist()
        == table["other"].to_pylist()[7::1000]
    )


def test_conditions_are_evaluated_over_many_rows(
    dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated: list[int] = []
    test = Passing.test

    def counted(passing: Passing, *arguments: Any) -> None:
        evaluated.append(passing.selection.count)
        test(passing, *arguments)

    monkeypatch.setattr(Passing, "test", counted)
    scan = dataset.scan(["number"], "pair.a = 5 OR pair.a = 25001", batch_size=100)
    assert scan.to_table()["number"].to_pylist() == [5, 25_001]
    assert min(evaluated) > 1000  # a zone, not a batch
    evaluated.clear()
    assert dataset.scan(["number"], "pair.a >= 5", batch_size=100, limit=1).to_table().num_rows == 1
    assert max(evaluated) <= 100


def _unexpected(selection: Selection, mask: pa.BooleanArray) -> Selection:
    raise AssertionError("rows are numbered")


def test_one_run_of_rows_is_decoded_alone(
    table: pa.Table, dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Selection, "where", _unexpected)
    read: list[int] = []
    materialised = PieceReader._materialised

    def counted(self: PieceReader, piece: Any, selection: Selection, *rest: Any) -> pa.RecordBatch:
        if "text" in self._names:  # a scan of another test may still read ahead
            read.append(selection.count)
        return materialised(self, piece, selection, *rest)

    monkeypatch.setattr(PieceReader, "_materialised", counted)
    found = dataset.scan(["text", "number"], "number >= 5000 AND number < 17000").to_table()
    assert found.equals(table.slice(5_000, 12_000).select(["text", "number"]))
    assert read == [12_000]
