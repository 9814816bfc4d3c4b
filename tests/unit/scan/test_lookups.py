"""Rows looked up in many small fragments: together the first time, fragment by fragment when met again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError, RowNotFoundError
from lance_engine.file.reader import FileReader
from lance_engine.scan import lookups

import lance_sql

FRAGMENTS, ROWS = 12, 40


@pytest.fixture
def opened_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the data files that are opened one by one."""
    opened: list[str] = []
    open_file = FileReader.__init__

    def noted(self: FileReader, store: object, path: str, **options: object) -> None:
        opened.append(path)
        open_file(self, store, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FileReader, "__init__", noted)
    return opened


def write(path: Path, *, version: str = "2.1", stable: bool = False) -> str:
    for part in range(FRAGMENTS):
        numbers = np.arange(part * ROWS, (part + 1) * ROWS)
        table = pa.table({"n": numbers, "s": [f"row {number}" if number % 7 else None for number in numbers]})
        options = {"data_storage_version": version, "stable_row_ids": stable} if part == 0 else {}
        lance_sql.write(table, str(path), mode="append" if part else "create", **options)
    return str(path)


def expected(numbers: list[int]) -> list[dict[str, object]]:
    return [{"n": number, "s": f"row {number}" if number % 7 else None} for number in numbers]


def address(number: int) -> int:
    return number // ROWS << 32 | number % ROWS


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_rows_come_in_the_order_asked_for(tmp_path: Path, version: str, opened_files: list[str]) -> None:
    dataset = lance_sql.open(write(tmp_path / "t", version=version))
    rng = random.Random(3)
    opened_files.clear()
    for attempt in range(4):
        numbers = [rng.randrange(FRAGMENTS * ROWS) for _ in range(60)]
        assert dataset.take([address(number) for number in numbers]).to_pylist() == expected(numbers)
        if attempt == 0 and version != "2.0":
            assert opened_files == []
    assert sorted(set(opened_files)) == sorted(opened_files)
    assert len(opened_files) == FRAGMENTS


def test_some_fragments_were_met_before(tmp_path: Path) -> None:
    dataset = lance_sql.open(write(tmp_path / "t"))
    for numbers in ([70, 3, 71], [150, 7, 330, 81, 200, 250, 290, 470, 2], [479, 0, 120, 41, 380, 0, 331]):
        assert dataset.take([address(number) for number in numbers]).to_pylist() == expected(numbers)
    ascending = [5, 45, 85, 125, 165, 205, 445]
    assert dataset.take([address(number) for number in ascending]).to_pylist() == expected(ascending)


def test_deleted_rows_added_columns_and_moved_rows(tmp_path: Path) -> None:
    uri = write(tmp_path / "t", stable=True)
    lance_sql.open(uri).delete("n % 10 = 4")
    lance_sql.open(uri).update({"s": "'new'"}, "n BETWEEN 100 AND 105")
    lance_sql.open(uri).add_columns({"twice": "n * 2"})
    lance_sql.write(pa.table({"n": [1000], "s": ["x"], "twice": [None]}), uri, mode="append")
    dataset = lance_sql.open(uri)
    everything = dataset.scan(columns=["_rowid", "_rowaddr", "n", "s", "twice"]).to_table().to_pylist()
    random.Random(1).shuffle(everything)
    found = dataset.take([row["_rowid"] for row in everything], ["_rowid", "_rowaddr", "n", "s", "twice"])
    assert found.to_pylist() == everything
    with pytest.raises(RowNotFoundError):
        dataset.take([4, 44, 84, 124, 164])


def test_many_rows_of_many_fragments(tmp_path: Path) -> None:
    dataset = lance_sql.open(write(tmp_path / "t"))
    numbers = random.Random(9).choices(range(FRAGMENTS * ROWS), k=2000)
    assert dataset.take([address(number) for number in numbers]).to_pylist() == expected(numbers)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    uri = write(tmp_path / "t")
    dataset = lance_sql.open(uri)
    damaged = Path(uri) / "data" / dataset.snapshot.fragments[5].files[0].path
    damaged.write_bytes(damaged.read_bytes()[:-100])
    ids = [address(number) for number in range(0, FRAGMENTS * ROWS, ROWS)]
    with pytest.raises(CorruptFileError, match=damaged.name):
        dataset.take(ids)
    with pytest.raises(CorruptFileError, match=damaged.name):
        dataset.take(ids)
    without = [number for number in range(0, FRAGMENTS * ROWS, ROWS) if number // ROWS != 5]
    assert dataset.take([address(number) for number in without]).to_pylist() == expected(without)


def test_runs_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "_MOST_FRAGMENTS", 5)
    dataset = lance_sql.open(write(tmp_path / "t"))
    numbers = random.Random(4).sample(range(FRAGMENTS * ROWS), 100)
    addresses = np.sort([address(number) for number in numbers]).astype(np.uint64)
    found = lookups.lookups(dataset.snapshot, dataset._reader, ["n"], addresses)
    assert sorted(len(lookup.apart) for lookup in found if lookup.apart) == [5, 5]
    assert lance_sql.open(dataset.uri).take([address(n) for n in numbers]).to_pylist() == expected(numbers)
