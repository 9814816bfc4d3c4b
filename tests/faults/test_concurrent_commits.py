"""Several processes append to one dataset at once: afterwards, it contains every commit exactly once."""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

import pyarrow as pa
from lance_engine.errors import CommitConflictError
from lance_engine.format.manifest import DataFile, Fragment
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.versions import open_snapshot

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64())]))
PROCESSES, COMMITS, ROWS = 4, 12, 10


def _fragment(name: str) -> Fragment:
    return Fragment(0, (DataFile(name, (0,), (0,), 2, 1, 100),), ROWS)


def append_many(path: str, worker: int) -> None:
    """Commit one fragment after the other, each on the version seen before."""
    version = open_snapshot(path).version
    for number in range(COMMITS):
        while True:
            try:
                snapshot = commit(
                    path, Append((_fragment(f"{worker}-{number}.lance"),)), read_version=version
                )
                break
            except CommitConflictError:  # twenty lost races in a row: legal, but the row must still get in
                continue
        version = snapshot.version


def test_no_append_is_lost(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    commit(path, Overwrite((), SCHEMA), read_version=0, options=CreateOptions(stable_row_ids=True))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=append_many, args=(path, worker)) for worker in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0, f"a writer failed on {sys.platform}"
    snapshot = open_snapshot(path)
    names = [file.path for fragment in snapshot.fragments for file in fragment.files]
    assert sorted(names) == sorted(
        f"{worker}-{n}.lance" for worker in range(PROCESSES) for n in range(COMMITS)
    )
    assert snapshot.version == 1 + PROCESSES * COMMITS
    assert [fragment.id for fragment in snapshot.fragments] == list(range(PROCESSES * COMMITS))
    ids = [row_id for fragment in snapshot.fragments for row_id in snapshot.row_ids(fragment).tolist()]
    assert ids == list(range(PROCESSES * COMMITS * ROWS))
    left = {file.name for file in Path(path, "_versions").iterdir() if file.name.endswith(".tmp")}
    assert left == set()
    assert len(list(Path(path, "_transactions").iterdir())) == snapshot.version
