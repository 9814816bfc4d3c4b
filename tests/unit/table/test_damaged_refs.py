"""Tags and branches that name what cannot be: an error for bad files, as for any other damage."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.errors import BranchInUseError, CorruptFileError

import lance_sql


@pytest.mark.parametrize("branch", ["\0", "..", "../x", "a//b", "/", "", "main", "x.lock", 3, []])
def test_a_tag_of_an_impossible_branch(tmp_path: Path, branch: object) -> None:
    dataset = lance_sql.write(pa.table({"a": [1]}), tmp_path / "t.lance")
    dataset.tags.create("t")
    file = tmp_path / "t.lance" / "_refs" / "tags" / "t.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"branch": branch}))
    with pytest.raises(CorruptFileError, match="has no branch"):
        lance_sql.open(dataset.uri, tag="t")
    assert dataset.tags.list() == []
    dataset.tags.delete("t")


def versions(place: Path) -> list[int]:
    return lance_sql.open(place).inspect.versions()["version"].to_pylist()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": "1"}', b'{"version": 1, "branch": "../x"}', None]
)
@pytest.mark.parametrize("folder", ["tags", "branches"])
def test_cleanup_keeps_what_a_damaged_reference_may_name(
    tmp_path: Path, folder: str, content: bytes | None
) -> None:
    place = tmp_path / "t.lance"
    dataset = lance_sql.write(pa.table({"a": [1, 2]}), place)
    (dataset.tags if folder == "tags" else dataset.branches).create("x")
    dataset.delete("a = 1")
    lance_sql.write(pa.table({"a": [3]}), place, "overwrite")
    file = place / "_refs" / folder / "x.json"
    sound = file.read_bytes()
    if content is None:  # a name that no tag and no branch can have
        file.with_name("x..y.json").write_bytes(sound)
    else:
        file.write_bytes(content)
    report = lance_sql.open(place).cleanup(datetime.timedelta(0), delete_unverified=True)
    assert report.versions == ()
    assert len(report.damaged_references) == 1
    assert versions(place) == [1, 2, 3]
    assert lance_sql.open(place, 1).scan().to_table()["a"].to_pylist() == [1, 2]
    vacuumed = lance_sql.sql(f"VACUUM '{place}' RETAIN 0 HOURS").arrow().to_pylist()[0]
    assert vacuumed["damaged_references"] == list(report.damaged_references)
    # Mended, or removed, it stands in the way of nothing.
    (file.with_name("x..y.json") if content is None else file).unlink()
    file.write_bytes(sound)
    report = lance_sql.open(place).cleanup(datetime.timedelta(0), delete_unverified=True)
    assert report.damaged_references == ()
    assert versions(place) == [1, 3]


def test_a_branch_that_a_damaged_one_may_need_stays(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    dataset = lance_sql.write(pa.table({"a": [1, 2]}), place)
    dataset.branches.create("x")
    lance_sql.open(place, branch="x").branches.create("y")
    (place / "_refs" / "branches" / "y.json").write_bytes(b"{")
    with pytest.raises(BranchInUseError, match="The file of another branch, possibly created from") as caught:
        dataset.branches.delete("x")
    assert "y.json" in str(caught.value)
    dataset.branches.delete("y")
    dataset.branches.delete("x")
    assert dataset.branches.list() == []
