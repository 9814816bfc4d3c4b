"""What is known about an opened dataset without reading: whether its version is still the newest."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.table import seen_version
from lance_engine.table.seen_version import SeenFolder, SeenVersion

import lance_sql


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset, which is trusted although it has just been written."""
    monkeypatch.setattr(seen_version, "_CLOCK_NS", 0)
    found = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2, 3]}), found)
    return found


def pause() -> None:
    """Until the clock of the file system shows another time."""
    time.sleep(0.05)


def seen(path: str) -> SeenVersion | None:
    pause()
    folder = SeenFolder.at(path)
    found = None if folder is None else folder.with_version(DatasetVersion.open(path).snapshot)
    pause()
    return found


def append(path: str) -> None:
    lance_sql.write(pa.table({"a": [4]}), path, mode="append")


def overwrite(path: str) -> None:
    lance_sql.write(pa.table({"b": [4]}), path, mode="overwrite")


def delete(path: str) -> None:
    lance_sql.sql(f"DELETE FROM '{path}' WHERE a = 1")


def remove(path: str) -> None:
    shutil.rmtree(path)


def write_anew(path: str) -> None:
    remove(path)
    lance_sql.write(pa.table({"a": [1, 2, 3]}), path)


def replace_by_copy(path: str) -> None:
    shutil.copytree(path, f"{path}.copy")  # with the same times
    os.rename(path, f"{path}.old")
    os.rename(f"{path}.copy", path)


def move_manifests(path: str) -> None:
    shutil.copytree(f"{path}/_versions", f"{path}/copy")
    os.rename(f"{path}/_versions", f"{path}/old")
    os.rename(f"{path}/copy", f"{path}/_versions")


def change_manifest(path: str) -> None:
    [manifest] = Path(path, "_versions").glob("*.manifest")
    times = os.stat(manifest)
    content = manifest.read_bytes()
    manifest.write_bytes(content[::-1])
    os.utime(manifest, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [append, overwrite, delete, remove, write_anew, replace_by_copy, move_manifests, change_manifest],
)
def test_changes_are_seen(path: str, change: Callable[[str], None]) -> None:
    found = seen(path)
    assert found is not None
    assert found.is_newest(path)
    change(path)
    assert not found.is_newest(path)


def test_reading_changes_nothing(path: str) -> None:
    found = seen(path)
    assert found is not None
    assert DatasetVersion.open(path).scan().count() == 3
    lance_sql.sql(f"SELECT sum(a) FROM '{path}'").fetchall()
    assert found.is_newest(path)


def test_relative_paths_follow_the_directory(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = seen("t.lance")
    assert found is not None
    assert found.is_newest("t.lance")
    (tmp_path / "other").mkdir()
    shutil.copytree(path, tmp_path / "other" / "t.lance")
    monkeypatch.chdir(tmp_path / "other")
    assert not found.is_newest("t.lance")
    assert found.is_newest("../t.lance")


def test_links_are_followed(path: str, tmp_path: Path) -> None:
    copy = str(tmp_path / "copy.lance")
    shutil.copytree(path, copy)
    link = tmp_path / "link.lance"
    link.symlink_to(path, target_is_directory=True)
    found = seen(str(link))
    assert found is not None
    assert found.is_newest(str(link))
    link.unlink()
    link.symlink_to(copy, target_is_directory=True)
    assert not found.is_newest(str(link))


def test_what_has_just_changed_is_not_trusted(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pause()
    assert SeenFolder.at(path) is not None
    monkeypatch.setattr(seen_version, "_CLOCK_NS", 10**15)
    assert SeenFolder.at(path) is None


def test_only_plain_folders_are_trusted(path: str, tmp_path: Path) -> None:
    pause()
    assert SeenFolder.at(str(tmp_path / "missing.lance")) is None
    assert SeenFolder.at(f"file://{path}") is None
    assert SeenFolder.at("a\0b") is None
    folder = SeenFolder.at(path)
    assert folder is not None
    database = f"sqlite:///{tmp_path}/versions.db"
    elsewhere = DatasetVersion.open(path, storage_options={"manifest_store": database})
    assert folder.with_version(elsewhere.snapshot) is None
    copy = str(tmp_path / "copy.lance")
    shutil.copytree(path, copy)
    assert folder.with_version(DatasetVersion.open(copy).snapshot) is None
