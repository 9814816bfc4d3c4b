"""A cleanup next to another cleanup, whose removals it neither counts nor misses, and next to restore()."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import VersionNotFoundError
from lance_engine.io.local import LocalStore
from lance_engine.operations import restore
from lance_engine.progress import ProgressEvent
from lance_engine.table.restores import versions_being_restored

import lance_sql


@pytest.mark.parametrize("place", [0, 1, 2])
def test_files_that_another_cleanup_removes_meanwhile(
    tmp_path: Path, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        dataset = lance_sql.write(pa.table({"a": range(1000)}), tmp_path / "t.lance", mode="overwrite")
    data = tmp_path / "t.lance" / "data"
    kept = {file.path for fragment in dataset.snapshot.fragments for file in fragment.files}
    removed = {path.name: path.stat().st_size for path in data.iterdir() if path.name not in kept}
    original = LocalStore.size
    asked: list[str] = []

    def size(self: LocalStore, path: str) -> int:
        if path.startswith("data/") and path.removeprefix("data/") in removed:
            asked.append(path)
            if len(asked) == place + 1:
                os.unlink(tmp_path / "t.lance" / path)
        return original(self, path)

    expected = dataset.cleanup(datetime.timedelta(0), delete_unverified=True, dry_run=True)
    monkeypatch.setattr(LocalStore, "size", size)
    report = dataset.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert {path.name for path in data.iterdir()} == kept
    assert len(asked) == len(removed) == 3
    taken = removed[asked[place].removeprefix("data/")]
    assert report.data_files == expected.data_files - 1 == 2
    assert report.bytes_removed == expected.bytes_removed - taken
    assert dataset.count_rows() == 1000


@pytest.fixture(params=["local", "pylance", "branch", "s3", "s3+ddb"])
def replaced(request: pytest.FixtureRequest, tmp_path: Path) -> lance_sql.Dataset:
    """A dataset whose last version has no file of the one before: [3] instead of [1, 2]."""
    place: str = request.param
    uri = str(tmp_path / "t.lance")
    if place.startswith("s3"):
        store = request.getfixturevalue("object_store")
        uri = store.s3("t.lance") if place == "s3" else store.ddb("t.lance")
    first, second = pa.table({"a": [1, 2]}), pa.table({"a": [3]})
    if place == "pylance":
        import lance

        lance.write_dataset(first, uri)
        lance.write_dataset(second, uri, mode="overwrite")
        return lance_sql.open(uri)
    dataset = lance_sql.write(first, uri)
    if place == "branch":
        dataset.branches.create("trial")
        lance_sql.write(first, uri, mode="overwrite", branch="trial")
    return lance_sql.write(second, uri, mode="overwrite", branch="trial" if place == "branch" else None)


def newest(dataset: lance_sql.Dataset) -> lance_sql.Dataset:
    return lance_sql.open(dataset.uri)


def test_a_version_that_is_restored_before_its_manifest_is_removed(replaced: lance_sql.Dataset) -> None:
    """The new version refers to its files."""
    before = replaced.version - 1

    def restore_first(event: ProgressEvent) -> None:
        if event.stage == "removing files" and newest(replaced).version == replaced.version:
            replaced.restore(before)

    report = replaced.cleanup(datetime.timedelta(0), progress=restore_first)
    assert before in report.versions
    assert newest(replaced).to_table() == pa.table({"a": [1, 2]})
    assert newest(replaced).verify(values=True).num_rows == 0


@pytest.mark.parametrize("begun", [False, True])
def test_a_version_that_is_removed_while_it_is_restored(
    replaced: lance_sql.Dataset, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """Either the cleanup knows of it and keeps it, or nothing is restored."""
    before = replaced.version - 1
    name = "commit_change" if begun else "kept_while_restoring"
    original = getattr(restore, name)

    def cleaning(*arguments: object) -> object:
        replaced.cleanup(datetime.timedelta(0))
        return original(*arguments)

    monkeypatch.setattr(restore, name, cleaning)
    if begun:
        assert replaced.restore(before).to_table() == pa.table({"a": [1, 2]})
    else:
        with pytest.raises(VersionNotFoundError, match=f"A cleanup has just removed version {before}"):
            replaced.restore(before)
        assert newest(replaced).to_table() == pa.table({"a": [3]})
    assert versions_being_restored(replaced.snapshot.store) == set()


def test_what_a_killed_restore_leaves(tmp_path: Path) -> None:
    """Its version is kept until the file is so old that no process can be behind it."""
    for _ in range(3):
        dataset = lance_sql.write(pa.table({"a": [1]}), tmp_path / "t.lance", mode="overwrite")
    folder = tmp_path / "t.lance" / "_refs" / "restores"
    folder.mkdir(parents=True)
    for name in ("2-9d5c", "no number", "99999999999999999999-0"):
        (folder / name).touch()
    assert dataset.cleanup(datetime.timedelta(0)).versions == (1,)
    week = time.time() - 8 * 24 * 3600
    for path in folder.iterdir():
        os.utime(path, (week, week))
    dataset.cleanup(datetime.timedelta(0))
    assert list(folder.iterdir()) == []
    assert dataset.cleanup(datetime.timedelta(0)).versions == (2,)
