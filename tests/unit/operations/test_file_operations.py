"""Compacting fragments and cleaning up old versions."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CommitConflictError, VersionNotFoundError
from lance_engine.format.manifest import BasePath
from lance_engine.format.operations import Append, Overwrite
from lance_engine.progress import ProgressEvent
from lance_engine.table.commit import commit
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from memory_tables import in_memory, nothing_left_behind

NOW = datetime.timedelta(0)
DAY = 24 * 60 * 60


def create(rows: int = 40, fragment_rows: int = 10, *, stable: bool = False) -> DatasetVersion:
    data = pa.table({"id": np.arange(rows), "s": [f"s{i % 5}" for i in range(rows)]})
    return in_memory(data, rows_per_file=fragment_rows, stable=stable)


def sizes(dataset: DatasetVersion) -> dict[int, int]:
    return {fragment.id: fragment.physical_rows for fragment in dataset.snapshot.fragments}


def ids(dataset: DatasetVersion) -> list[int]:
    found: list[int] = dataset.scan(["id"]).to_table()["id"].to_pylist()
    return found


def files(dataset: DatasetVersion) -> list[str]:
    return dataset.snapshot.store.list("")


# ---- compaction ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True])
def test_small_fragments_are_joined(stable: bool) -> None:
    dataset = create(stable=stable).delete("id IN (3, 4, 39)").update({"s": "'new'"}, "id = 5")
    after = dataset.compact(target_rows=25)
    assert sizes(after) == {5: 25, 6: 12}
    assert after.scan().to_table().equals(dataset.scan().to_table())
    assert all(fragment.deletion_file is None for fragment in after.snapshot.fragments)
    assert after.version == dataset.version + 2
    same_ids = after.scan(["_rowid"]).to_table() == dataset.scan(["_rowid"]).to_table()
    assert same_ids is stable
    assert after.compact(target_rows=25).version == after.version


def test_row_versions_survive() -> None:
    dataset = create(stable=True).update({"s": "'new'"}, "id = 5").compact()
    snapshot = dataset.snapshot
    (fragment,) = snapshot.fragments
    assert snapshot.row_ids(fragment).tolist()[-2:] == [39, 5]
    assert snapshot.last_updated_at_versions(fragment).tolist() == [1] * 39 + [2]
    assert dataset.take([5])["s"].to_pylist() == ["new"]


def test_large_fragments_stay() -> None:
    after = create(fragment_rows=15).delete("id IN (0, 1, 16)").compact(target_rows=12)
    # The first has lost more than a tenth of its rows, the second has not, the third is alone.
    assert sizes(after) == {1: 15, 2: 10, 3: 12, 4: 1}
    assert sorted(ids(after)) == [i for i in range(40) if i not in (0, 1, 16)]
    assert sizes(create(fragment_rows=15).delete("id = 16").compact(target_rows=10)) == {0: 15, 1: 15, 2: 10}
    strict = create(fragment_rows=15).delete("id = 16").compact(target_rows=10, deleted_share=0)
    assert sizes(strict) == {0: 15, 2: 10, 3: 10, 4: 4}


def test_compacting_an_empty_dataset_does_nothing() -> None:
    empty = create().truncate()
    assert empty.compact().version == empty.version
    with pytest.raises(ValueError, match="target_rows"):
        empty.compact(target_rows=0)


def test_compaction_is_redone_after_a_delete_and_keeps_what_was_appended() -> None:
    old = create()
    old.delete("id = 7")
    store = old.snapshot.store
    more = write_fragments(store, old.snapshot.schema, [pa.record_batch({"id": [99], "s": ["x"]})])
    commit(store, Append(tuple(more)), read_version=2)
    after = old.compact()
    assert sorted(ids(after)) == [*(i for i in range(40) if i != 7), 99]
    assert len(after.snapshot.fragments) == 1


def test_a_compaction_that_loses_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = create()
    with nothing_left_behind(dataset, monkeypatch), pytest.raises(CommitConflictError):
        dataset.compact()


# ---- clean-up --------------------------------------------------------------------------------------------


def test_cleaning_up() -> None:
    dataset = create().delete("id < 10").delete("id = 11").update({"s": "'new'"}, "id = 12").compact()
    rows = dataset.scan().to_table()
    tried = dataset.cleanup(NOW, dry_run=True)
    assert tried.versions == (1, 2, 3, 4, 5)
    assert (tried.data_files, tried.deletion_files, tried.transaction_files) == (5, 2, 5)
    before = sum(dataset.snapshot.store.size(path) for path in files(dataset))
    report = dataset.cleanup(NOW)
    assert (report.versions, report.bytes_removed) == (tried.versions, tried.bytes_removed)
    assert before - sum(dataset.snapshot.store.size(path) for path in files(dataset)) == report.bytes_removed
    assert len(files(dataset)) == 3
    store: Any = dataset.snapshot.store
    assert DatasetVersion.open(store).scan().to_table().equals(rows)
    with pytest.raises(VersionNotFoundError):
        DatasetVersion.open(store, 1)
    assert dataset.cleanup(NOW).bytes_removed == 0


def test_what_is_young_tagged_or_the_start_of_a_branch_stays() -> None:
    dataset = create().delete("id = 1").delete("id = 2").delete("id = 3").delete("id = 4")
    store: Any = dataset.snapshot.store
    assert dataset.cleanup(datetime.timedelta(hours=1)).versions == ()
    dataset.tags.create("kept", 2)
    store.put("_refs/branches/b.json", json.dumps({"parentBranch": None, "parentVersion": 3}).encode())
    assert dataset.cleanup(NOW).versions == (1, 4)
    assert DatasetVersion.open(store, tag="kept").scan().to_table().num_rows == 39
    assert DatasetVersion.open(store, 3).scan().to_table().num_rows == 38


def test_files_that_no_version_names_stay_unless_asked_for() -> None:
    dataset = create()
    store = dataset.snapshot.store
    known = files(dataset)
    junk = ["data/x.lance", "_deletions/0-1-7.bin", "_transactions/1-u.txn", "_indices/u/page.lance"]
    for path in junk:
        store.put(path, b"1234567")
    # The side files of a data file belong to it.
    side = dataset.snapshot.fragments[0].files[0].path.removesuffix(".lance")
    store.put(f"data/{side}/1.blob", b"x")
    assert dataset.cleanup(NOW).bytes_removed == 0
    report = dataset.cleanup(NOW, delete_unverified=True)
    assert (report.bytes_removed, report.data_files, report.index_files) == (28, 1, 1)
    assert files(dataset) == sorted([*known, f"data/{side}/1.blob"])


def test_files_that_no_version_names_go_after_a_week(tmp_path: Path) -> None:
    dataset = DatasetVersion(write_dataset(pa.table({"id": range(10)}), tmp_path))
    known = files(dataset)
    old = {
        "data/old.lance": True,
        "data/.old.lance.12345678.tmp": True,
        "data/stem/1.blob": True,
        "_deletions/0-1-7.bin": True,
        "_transactions/1-u.txn": True,
        "_indices/u/page.lance": True,
        "_versions/.18446744073709551613.manifest.12345678.tmp": True,
        # Of somebody who keeps notes there; and perhaps a version, of which a database would know.
        "data/notes.txt": False,
        "_versions/18446744073709551613.manifest-0f8c5a2e-2f9c-4b0b-9d3b-0d2e4c1a7b5e": False,
    }
    store = dataset.snapshot.store
    for path in old:
        for name, age in ((path, 8), (f"{path.rpartition('/')[0]}/young.lance", 6)):
            store.put(name, b"1234567")
            written = time.time() - age * DAY
            os.utime(tmp_path / name, (written, written))
    before = files(dataset)
    gone = [path for path, goes in old.items() if goes]
    assert dataset.cleanup(NOW, dry_run=True).bytes_removed == 7 * len(gone)
    assert files(dataset) == before
    assert dataset.cleanup(NOW).bytes_removed == 7 * len(gone)
    assert files(dataset) == sorted(set(before) - set(gone))
    dataset.cleanup(NOW, delete_unverified=True)
    assert files(dataset) == sorted([*known, *(path for path, goes in old.items() if not goes)])


@pytest.mark.parametrize("root", [True, False])
def test_old_files_that_a_base_path_of_the_dataset_itself_names_stay(tmp_path: Path, root: bool) -> None:
    snapshot = write_dataset(pa.table({"id": range(10)}), tmp_path)
    (fragment,) = snapshot.fragments
    based = [dataclasses.replace(file, base_id=4) for file in fragment.files]
    again = dataclasses.replace(fragment, files=tuple(based))
    base = BasePath(4, f"file://{tmp_path}" if root else f"{tmp_path}/data/", root)
    overwrite = Overwrite((again,), snapshot.schema, initial_bases=(base,))
    dataset = DatasetVersion(commit(tmp_path, overwrite, read_version=1))
    for path in tmp_path.rglob("*.*"):
        os.utime(path, (0, 0))
    assert dataset.cleanup(NOW).data_files == 0
    assert DatasetVersion.open(str(tmp_path)).scan().to_table()["id"].to_pylist() == list(range(10))


def test_cleaning_up_tells_how_far_it_is_and_can_be_cancelled() -> None:
    dataset = create().delete("id < 10").delete("id = 11")
    events: list[ProgressEvent] = []
    dataset.cleanup(NOW, dry_run=True, progress=events.append)
    assert [(event.stage, event.unit, event.total_rows) for event in events if not event.rows] == [
        ("reading versions", "versions", 3),
        ("sizing files", "files", 5),
    ]
    assert events[-1].rows == 5

    def cancel_at(stage: str) -> Callable[[ProgressEvent], None]:
        def cancel(event: ProgressEvent) -> None:
            if event.stage == stage:
                raise KeyboardInterrupt

        return cancel

    before = files(dataset)
    for stage in ("reading versions", "removing files"):
        with pytest.raises(KeyboardInterrupt):
            dataset.cleanup(NOW, progress=cancel_at(stage))
        assert files(dataset) == before
    assert dataset.cleanup(NOW).versions == (1, 2)


@pytest.mark.parametrize("stable", [False, True])
def test_deleting_tells_how_far_it_is(stable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_engine.progress._INTERVAL", 0.0)
    monkeypatch.setattr("lance_engine.operations.delete._REPORTED_ROWS", 15)
    events: list[ProgressEvent] = []
    dataset = create(stable=stable)
    after = dataset.delete("id % 7 = 1", progress=events.append)
    told = [(event.stage, event.rows, event.total_rows) for event in events]
    assert told[:4] == [("finding rows", rows, 40) for rows in (0, 20, 40, 40)]
    assert told[4:] == [("deleting rows", 0, 6)]
    assert after.scan().to_table().equals(dataset.delete("id % 7 = 1").scan().to_table())
    empty = after.truncate().delete("id = 1", progress=events.append)
    assert empty.count_rows() == 0
