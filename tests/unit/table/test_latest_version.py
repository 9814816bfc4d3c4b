"""The latest version is found whatever the hint file, the times of files and earlier cleanups say."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.io import LocalStore
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.table.hint import HINT_PATH
from lance_engine.table.versions import find_latest, open_snapshot
from lance_engine.write.dataset import write_dataset

import lance_sql

TABLE = pa.table({"id": range(10)})
LATEST = 7
# Where cleanups removed versions, those that tags kept are left.
REMOVED = {
    "none": (),
    "after the hinted": (4, 5, 6),
    "all": (1, 2, 3, 4, 5, 6),
    "old": (1, 2),
    "single": (4,),
}


def _table(root: Path, removed: Sequence[int] = ()) -> Path:
    write_dataset(TABLE, root)
    for version in range(1, LATEST):
        DatasetVersion.open(str(root)).delete(f"id = {version}")
    for version in removed:
        (root / NamingScheme.V2.path(version)).unlink()
    return root


def _transaction(dataset: lance_sql.Dataset) -> str:
    return dataset.snapshot.manifest.transaction_file


def _touch_hint(root: Path) -> Path:
    later = (root / "_versions").stat().st_mtime_ns + 1_000_000_000
    os.utime(root / HINT_PATH, ns=(later, later))
    return root


def _same_times(root: Path) -> Path:
    for folder, _, names in os.walk(root, topdown=False):
        for path in (*(os.path.join(folder, name) for name in names), folder):
            os.utime(path, ns=(10**18, 10**18))
    return root


def _copied(root: Path) -> Path:
    return Path(shutil.copytree(root, root.with_name("copied"), copy_function=shutil.copyfile))


def _copied_with_times(root: Path) -> Path:
    return Path(shutil.copytree(root, root.with_name("copied")))


def _copied_hint_last(root: Path) -> Path:
    """As tools copy that transfer files by name, or by time."""
    copied = root.with_name("copied")
    shutil.copytree(root, copied, ignore=shutil.ignore_patterns("*hint*"))
    shutil.copyfile(root / HINT_PATH, copied / HINT_PATH)
    return copied


DONE: dict[str, Callable[[Path], Path]] = {
    "touched hint": _touch_hint,
    "same times": _same_times,
    "copied": _copied,
    "copied with times": _copied_with_times,
    "copied, hint last": _copied_hint_last,
}


@pytest.mark.sampled(30)
@pytest.mark.parametrize("hinted", [1, 3, 5, 6, 8, 99])
@pytest.mark.parametrize("removed", REMOVED)
@pytest.mark.parametrize("done", DONE)
def test_an_outdated_hint(tmp_path: Path, hinted: int, removed: str, done: str) -> None:
    root = _table(tmp_path / "t.lance", REMOVED[removed])
    (root / HINT_PATH).write_text(json.dumps({"version": hinted}))
    root = DONE[done](root)
    assert find_latest(LocalStore(root)) == (LATEST, NamingScheme.V2)
    assert open_snapshot(root).version == LATEST
    changed = lance_sql.open(root).delete("id = 9")
    assert changed.version == LATEST + 1
    expected = [0, 7, 8]
    with lance_sql.connect() as session:
        assert session.sql(f"SELECT id FROM '{root}'").fetchall() == [(number,) for number in expected]
    assert lance.dataset(str(root)).to_table()["id"].to_pylist() == expected
    assert json.loads((root / HINT_PATH).read_text()) == {"version": LATEST + 1}


def test_a_hint_that_was_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wrote no hints, and removed what came right after the version that is named."""
    write_dataset(TABLE, tmp_path)
    dataset = DatasetVersion.open(str(tmp_path))
    dataset.tags.create("kept")
    monkeypatch.setenv("LANCE_USE_VERSION_HINT", "0")
    for _ in range(3):
        dataset = dataset.delete(f"id = {dataset.version}")
    dataset.cleanup(datetime.timedelta(0))
    monkeypatch.undo()
    assert json.loads((tmp_path / HINT_PATH).read_text()) == {"version": 1}
    _touch_hint(tmp_path)
    assert find_latest(LocalStore(tmp_path)) == (4, NamingScheme.V2)
    assert write_dataset(TABLE, tmp_path, "append").version == 5


@pytest.mark.parametrize("content", ['{"version":-1}', '{"version":"2"}', "[]", "", "junk", "[" * 10**6])
def test_a_damaged_hint(tmp_path: Path, content: str) -> None:
    write_dataset(TABLE, tmp_path)
    hint = tmp_path / HINT_PATH
    hint.write_text(content)
    assert write_dataset(TABLE, tmp_path, "append").version == 2
    assert open_snapshot(tmp_path).version == 2
    assert hint.read_text() == '{"version":2}'


def test_branches_have_hints_of_their_own(tmp_path: Path) -> None:
    root = _table(tmp_path / "t.lance")
    lance_sql.open(root).branches.create("b")
    branch = lance_sql.open(root, branch="b")
    for number in (7, 8):
        branch = branch.delete(f"id = {number}")
    folder = Path(branch.snapshot.uri)
    (folder / HINT_PATH).write_text(json.dumps({"version": branch.version - 1}))
    _touch_hint(folder)
    assert lance_sql.open(root, branch="b").version == branch.version
    assert lance_sql.open(root, branch="b").delete("id = 9").version == branch.version + 1


def test_a_session_sees_what_replaced_the_newest_version(tmp_path: Path) -> None:
    """Also if all times are those of before."""
    root = _table(tmp_path / "t.lance")
    older = _copied_with_times(root)
    for version in (6, 7):
        (older / NamingScheme.V2.path(version)).unlink()
    shutil.copystat(root / "_versions", older / "_versions")
    with lance_sql.connect() as session:
        query = f"SELECT count(*) FROM '{root}'"
        assert session.sql(query).fetchall() == [(4,)]
        root.rename(tmp_path / "aside.lance")
        older.rename(root)
        assert session.sql(query).fetchall() == [(6,)]


def test_a_version_is_found_with_one_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _table(tmp_path / "t.lance")
    asked: list[tuple[str, str]] = []
    for name in ("names", "exists", "read"):
        method = getattr(LocalStore, name)

        def counted(store: LocalStore, path: str, *rest: Any, name: str = name, method: Any = method) -> Any:
            asked.append((name, path))
            return method(store, path, *rest)

        monkeypatch.setattr(LocalStore, name, counted)
    opened = lance_sql.open(root)
    assert asked == [("names", "_versions"), ("read", NamingScheme.V2.path(LATEST))]
    opened.update_config({"a": "b"})
    assert asked[2:4] == [("names", "_versions"), ("exists", f"_transactions/{_transaction(opened)}")]
    assert len(asked) == 4
