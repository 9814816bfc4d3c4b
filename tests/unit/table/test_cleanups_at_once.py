"""Two cleanups at the same time: what one has removed, the other neither counts nor misses."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.io.local import LocalStore

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
