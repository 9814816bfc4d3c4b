"""Our deleter and updater, our appender and pylance's at work on one dataset at the same time."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_sql

COMMITS, ROWS = 6, 20


def _rows(writer: int, number: int) -> pa.Table:
    start = (writer * COMMITS + number) * ROWS
    return pa.table({"a": np.arange(start, start + ROWS), "b": np.zeros(ROWS)})


def append_ours(path: str) -> None:
    for number in range(COMMITS):
        lance_sql.write(_rows(0, number), path, mode="append")


def append_theirs(path: str) -> None:
    for number in range(COMMITS):
        lance.write_dataset(_rows(1, number), path, mode="append")


def delete_ours(path: str) -> None:
    dataset = lance_sql.open(path)
    for number in range(COMMITS):
        # Also as the version that it was at the start, which others have long left behind.
        (dataset if number % 2 else lance_sql.open(path)).delete(f"a = {-1 - number}")


def update_ours(path: str) -> None:
    for number in range(COMMITS):
        lance_sql.open(path).update({"b": "b + 1"}, f"a <= -20 AND a > {-26 - number}")


def delete_theirs(path: str) -> None:
    for number in range(COMMITS):
        lance.dataset(path).delete(f"a = {-11 - number}")


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable row ids"])
def test_nothing_is_lost(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t.lance")
    start = pa.table({"a": np.arange(-40, 0), "b": np.zeros(40)})
    lance.write_dataset(start, path, data_storage_version="2.1", enable_stable_row_ids=stable)
    context = multiprocessing.get_context("spawn")
    jobs: list[Any] = [append_ours, append_theirs, delete_ours, update_ours, delete_theirs]
    processes = [context.Process(target=job, args=(path,)) for job in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    assert ours.version == 1 + 5 * COMMITS
    deleted = {-1 - number for number in range(COMMITS)} | {-11 - number for number in range(COMMITS)}
    updates = {a: sum(a > -26 - number for number in range(COMMITS)) for a in range(-40, -19)}
    expected = {a: updates.get(a, 0) for a in range(-40, 2 * COMMITS * ROWS) if a not in deleted}
    columns = ["a", "b", "_rowid"]
    rows = ours.scan(columns).to_table().to_pylist()
    assert rows == theirs.scanner(columns=columns).to_table().to_pylist()
    assert {row["a"]: row["b"] for row in rows} == expected
    assert len(rows) == len(expected) == ours.count_rows()
    assert len({row["_rowid"] for row in rows}) == len(rows)
    theirs.validate()
    # Deletion files that were replaced while others committed are gone.
    named = {
        fragment.deletion_file.file_name(fragment.id)
        for version in range(1, ours.version + 1)
        for fragment in lance_sql.open(path, version).snapshot.fragments
        if fragment.deletion_file is not None
    }
    assert {file.name for file in (tmp_path / "t.lance" / "_deletions").iterdir()} == named
