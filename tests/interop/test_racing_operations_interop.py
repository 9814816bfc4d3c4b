"""Our deleter and updater, our appender and pylance's at work on one dataset at the same time."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

COMMITS, ROWS = 4, 20


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


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "stable",
    [pytest.param(False, id="addresses", marks=pytest.mark.slow), pytest.param(True, id="stable row ids")],
)
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
    # No deletion file that a version names is gone. The official writer leaves some of lost races behind,
    # also where it races alone; ours does not: `tests/faults/test_our_races.py`.
    named = {
        fragment.deletion_file.file_name(fragment.id)
        for version in range(1, ours.version + 1)
        for fragment in lance_sql.open(path, version).snapshot.fragments
        if fragment.deletion_file is not None
    }
    assert named <= {file.name for file in (tmp_path / "t.lance" / "_deletions").iterdir()}


# ---- two processes of each, appending, deleting and updating -------------------------------------------


SLOTS = 42
# How pylance says that others were faster too often.
GIVEN_UP = ("onflict", "contention", "concurrent writers")
KINDS = ("append", "delete", "update")


def _work(path: str, worker: int, ours: bool, commits: int) -> None:
    """Commits of one process, all different: append rows, delete some of its rows, change others.

    Every worker has rows of its own, in fragments that it shares with the others' rows from the start.
    """
    first = worker * SLOTS
    for number in range(commits):
        kind, slot = number % 3, first + number // 3
        if kind == 0:
            rows = pa.table({"a": [10_000 + worker * 1000 + number], "b": [0.0]})
            if ours:
                _retry(lambda rows=rows: lance_sql.write(rows, path, mode="append"))
            else:
                _retry(lambda rows=rows: lance.write_dataset(rows, path, mode="append"))
        elif kind == 1:
            _retry(lambda where=f"a = {slot}": _open(path, ours).delete(where))
        else:
            where = f"a = {4 * SLOTS + slot}"
            _retry(lambda where=where: _open(path, ours).update({"b": "b + 1"}, where))


def _open(path: str, ours: bool) -> Any:
    return lance_sql.open(path) if ours else lance.dataset(path)


def _retry(operation: Callable[[], Any]) -> None:
    # Either side gives up after some attempts in a row that others won.
    for attempt in range(50):
        try:
            operation()
            return
        except (CommitConflictError, OSError) as error:
            if isinstance(error, OSError) and not any(word in str(error) for word in GIVEN_UP):
                raise
            time.sleep(0.02 * (attempt + 1))
    raise AssertionError("never got through")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commits", "stable"),
    [
        pytest.param(5, False, id="5-addresses"),
        pytest.param(5, True, id="5-stable row ids", marks=pytest.mark.slow),
        pytest.param(125, False, id="125-addresses", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param(125, True, id="125-stable row ids", marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_four_processes(tmp_path: Path, commits: int, stable: bool) -> None:
    race(str(tmp_path / "t.lance"), commits, stable)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["s3", "ddb"])
def test_four_processes_on_an_object_store(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    race(getattr(object_store, kind)("t.lance"), 125, stable=True)


def race(path: str, commits: int, stable: bool) -> None:
    """Four processes, two of each implementation, with so many commits each."""
    start = pa.table({"a": np.arange(8 * SLOTS)[::-1], "b": np.zeros(8 * SLOTS)})
    # Different workers delete neighbouring rows of one file.
    start = start.take(np.random.default_rng(1).permutation(8 * SLOTS))
    lance.write_dataset(
        start, path, data_storage_version="2.1", max_rows_per_file=100, enable_stable_row_ids=stable
    )
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_work, args=(path, worker, worker < 2, commits)) for worker in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    each = [(worker, number) for worker in range(4) for number in range(commits)]
    expected = dict.fromkeys(range(8 * SLOTS), 0.0)
    for worker, number in each:
        slot = worker * SLOTS + number // 3
        if number % 3 == 0:
            expected[10_000 + worker * 1000 + number] = 0.0
        elif number % 3 == 1:
            del expected[slot]
        else:
            expected[4 * SLOTS + slot] += 1.0
    ours, theirs = lance_sql.open(path), lance.dataset(path)
    rows = ours.scan(["a", "b", "_rowid"]).to_table().to_pylist()
    assert {row["a"]: row["b"] for row in rows} == expected
    assert len(rows) == len(expected) == theirs.count_rows()
    assert len({row["_rowid"] for row in rows}) == len(rows)
    assert rows == theirs.scanner(columns=["a", "b", "_rowid"]).to_table().to_pylist()
    # Every commit made one version: none is missing, and each says which change made it.
    versions = ours.inspect.transactions().to_pylist()
    assert [row["version"] for row in versions] == list(range(1, ours.version + 1))
    kinds = Counter(row["operation"] for row in versions[1:])
    assert kinds == Counter({kind: 4 * len(range(n, commits, 3)) for n, kind in enumerate(KINDS)})
    assert len({row["uuid"] for row in versions}) == len(versions)
    assert ours.verify(values=True).num_rows == 0
    theirs.validate()
