"""Our writers race for the deletion files of one fragment: files of the losers are removed."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError

import lance_sql

PROCESSES, COMMITS = 3, 8


def change(path: str, worker: int) -> None:
    old = lance_sql.open(path)
    for number in range(COMMITS):
        row = worker * COMMITS + number
        # Also from the version at the start, which others have long left behind.
        for dataset in (old if number % 2 else lance_sql.open(path), *[None] * 20):
            try:
                found = dataset or lance_sql.open(path)
                found.update({"b": "1"}, f"a = {row}") if number % 4 == 3 else found.delete(f"a = {row}")
                break
            except CommitConflictError:  # others were faster ten times in a row: legal
                continue


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_no_deletion_file_is_left_over(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t.lance")
    rows = PROCESSES * COMMITS + 10
    lance_sql.write(pa.table({"a": range(rows), "b": [0] * rows}), path, stable_row_ids=stable)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=change, args=(path, worker)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    latest = lance_sql.open(path)
    assert latest.count_rows() == rows - PROCESSES * COMMITS * 3 // 4
    assert latest.count_rows("b = 1") == PROCESSES * COMMITS // 4
    deletions, data = set(), set()
    for version in range(1, latest.version + 1):
        for fragment in lance_sql.open(path, version).snapshot.fragments:
            data |= {file.path for file in fragment.files}
            if fragment.deletion_file is not None:
                deletions.add(fragment.deletion_file.file_name(fragment.id))
    assert {file.name for file in (tmp_path / "t.lance" / "_deletions").iterdir()} == deletions
    assert {file.name for file in (tmp_path / "t.lance" / "data").iterdir()} == data
