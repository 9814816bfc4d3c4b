"""Our writers and those of pylance append and delete in one dataset at the same time."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError
from lance_engine.table.versions import open_snapshot
from lance_engine.write.dataset import write_dataset

COMMITS, ROWS = 5, 20


def _rows(writer: int, number: int) -> pa.Table:
    start = (writer * COMMITS + number) * ROWS
    return pa.table({"a": np.arange(start, start + ROWS, dtype=np.int64)})


def append_ours(path: str, writer: int) -> None:
    for number in range(COMMITS):
        while True:
            try:
                write_dataset(_rows(writer, number), path, mode="append")
                break
            except CommitConflictError:  # twenty lost races in a row
                continue


def append_theirs(path: str, writer: int) -> None:
    for number in range(COMMITS):
        lance.write_dataset(_rows(writer, number), path, mode="append")


def delete_theirs(path: str) -> None:
    """Deletes rows that were there from the start, one at a time."""
    for number in range(COMMITS):
        lance.dataset(path).delete(f"a = {-1 - number}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stable", [False, True])
def test_nothing_is_lost(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "t.lance")
    start: Any = pa.table({"a": np.arange(-COMMITS, 0, dtype=np.int64)})
    lance.write_dataset(start, path, data_storage_version="2.1", enable_stable_row_ids=stable)
    context = multiprocessing.get_context("spawn")
    jobs: list[tuple[Any, tuple[Any, ...]]] = [
        (append_ours, (path, 0)),
        (append_ours, (path, 1)),
        (append_theirs, (path, 2)),
        (delete_theirs, (path,)),
    ]
    processes = [context.Process(target=job, args=arguments) for job, arguments in jobs]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    snapshot = open_snapshot(path)
    assert snapshot.version == 1 + 4 * COMMITS
    assert snapshot.num_rows == 3 * COMMITS * ROWS
    rows = lance.dataset(path).scanner(columns=["a"], with_row_id=True).to_table()
    assert sorted(rows["a"].to_pylist()) == list(range(3 * COMMITS * ROWS))
    ids = np.concatenate([snapshot.row_ids(fragment) for fragment in snapshot.fragments])
    assert len(np.unique(ids)) == len(ids)
    assert rows["_rowid"].to_pylist() == ids[len(ids) - rows.num_rows :].tolist()
