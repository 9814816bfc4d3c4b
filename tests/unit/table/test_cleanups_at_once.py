"""A cleanup next to another cleanup, whose removals it neither counts nor misses, and next to restore()."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import VersionNotFoundError
from lance_engine.io.local import LocalStore
from lance_engine.operations import restore
from lance_engine.progress import ProgressEvent

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


def restorable(path: Path) -> lance_sql.Dataset:
    """Two versions without a common file."""
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    return lance_sql.write(pa.table({"a": [3]}), path, mode="overwrite")


def test_a_version_that_is_restored_before_its_manifest_is_removed(tmp_path: Path) -> None:
    """The new version refers to its files."""
    dataset = restorable(tmp_path / "t.lance")

    def restore_first(event: ProgressEvent) -> None:
        if event.stage == "removing files" and lance_sql.open(dataset.uri).version == 2:
            dataset.restore(1)

    report = dataset.cleanup(datetime.timedelta(0), progress=restore_first)
    assert report.versions == (1,)
    assert lance_sql.open(dataset.uri).to_table() == pa.table({"a": [1, 2]})
    assert lance_sql.open(dataset.uri).verify(values=True).num_rows == 0


@pytest.mark.parametrize("begun", [False, True])
def test_a_version_that_is_removed_while_it_is_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    """Either the cleanup knows of it and keeps it, or nothing is restored."""
    dataset = restorable(tmp_path / "t.lance")
    name = "commit_change" if begun else "kept_while_restoring"
    original = getattr(restore, name)

    def cleaning(*arguments: object) -> object:
        dataset.cleanup(datetime.timedelta(0))
        return original(*arguments)

    monkeypatch.setattr(restore, name, cleaning)
    if begun:
        assert dataset.restore(1).to_table() == pa.table({"a": [1, 2]})
    else:
        with pytest.raises(VersionNotFoundError, match=r"A cleanup has just removed version 1"):
            dataset.restore(1)
        assert lance_sql.open(dataset.uri).to_table() == pa.table({"a": [3]})
    assert not list((tmp_path / "t.lance" / "_refs" / "restores").iterdir())
