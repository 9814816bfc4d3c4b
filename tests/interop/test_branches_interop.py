"""Branches, shallow clones and detached versions, made by either implementation and used by the other."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import BranchExistsError, BranchInUseError, VersionNotFoundError
from lance_engine.io import MemoryStore
from lance_engine.write.dataset import write_dataset

TABLE = pa.table({"id": range(20)})


def _ids(dataset: DatasetVersion | lance.LanceDataset) -> list[int]:
    table = dataset.scan().to_table() if isinstance(dataset, DatasetVersion) else dataset.to_table()
    return sorted(table["id"].to_pylist())


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Version 1 has the rows 0 to 9, version 2 also 10 to 19, and version 3 lacks row 5."""
    path = str(tmp_path / "t.lance")
    write_dataset(TABLE.slice(0, 10), path)
    DatasetVersion(write_dataset(TABLE.slice(10), path, "append")).delete("id = 5")
    return path


def test_they_work_on_our_branches(path: str) -> None:
    ours = DatasetVersion.open(path)
    branch = ours.branches.create("exp/dev", 2)
    assert (branch.name, branch.parent, branch.parent_version) == ("exp/dev", None, 2)
    theirs = lance.dataset(path).checkout_version(("exp/dev", None))
    assert theirs.version == 2
    assert _ids(theirs) == list(range(20))
    theirs.delete("id < 3")
    theirs = lance.write_dataset(pa.table({"id": [100]}), theirs, mode="append")
    dev = DatasetVersion.open(path, branch="exp/dev")
    assert (dev.branch, dev.version) == ("exp/dev", 4)
    assert _ids(dev) == [*range(3, 20), 100]
    # The main branch has its own next version.
    assert _ids(lance.dataset(path)) == [i for i in range(20) if i != 5]
    dev = dev.delete("id = 7").update({"id": "101"}, "id = 100")
    dev.branches.create("child")
    child = lance.dataset(path).checkout_version(("child", None))
    assert _ids(child) == _ids(dev) == [3, 4, 5, 6, *range(8, 20), 101]
    assert {name: entry["parent_branch"] for name, entry in lance.dataset(path).branches.list().items()} == {
        "exp/dev": None,
        "child": "exp/dev",
    }
    with pytest.raises(Exception, match="referenced by"):
        lance.dataset(path).branches.delete("exp/dev")
    lance.dataset(path).branches.delete("child")
    assert [branch.name for branch in dev.branches.list()] == ["exp/dev"]


def test_we_work_on_their_branches(path: str) -> None:
    theirs = lance.dataset(path).create_branch("dev", 2)
    theirs.delete("id = 1")
    theirs.create_branch("child")
    child = DatasetVersion.open(path, branch="child")
    assert _ids(child) == [i for i in range(20) if i != 1]
    child = child.delete("id = 2")
    child = DatasetVersion(write_dataset(pa.table({"id": [100]}), path, "append", branch="child"))
    child = child.compact()
    child.tags.create("ours")
    assert _ids(lance.dataset(path).checkout_version(("child", None))) == _ids(child)
    assert _ids(lance.dataset(path).checkout_version("ours")) == [0, *range(3, 20), 100]
    lance.dataset(path).checkout_version(("child", None)).tags.create("theirs", ("child", 3))
    tagged = DatasetVersion.open(path, tag="theirs")
    assert (tagged.branch, tagged.version) == ("child", 3)
    listed = {branch.name: (branch.parent, branch.parent_version) for branch in child.branches.list()}
    assert listed == {"child": ("dev", 3), "dev": (None, 2)}
    with pytest.raises(BranchInUseError, match="parent of the branch 'child'"):
        child.branches.delete("dev")
    child.branches.delete("child")
    child.branches.delete("dev")
    assert lance.dataset(path).branches.list() == {}
    refs = DatasetVersion.open(path).inspect.refs()
    assert sorted(refs["name"].to_pylist()) == ["ours", "theirs"]


def test_references_look_like_theirs(path: str) -> None:
    DatasetVersion.open(path).branches.create("a/b")
    lance.dataset(path).create_branch("c")
    folder = Path(path) / "_refs" / "branches"
    ours, theirs = (json.loads((folder / name).read_text()) for name in ("a%2Fb.json", "c.json"))
    assert set(ours) == set(theirs)
    assert ours["parentVersion"] == theirs["parentVersion"]
    assert ours["manifestSize"] > 300
    assert (Path(path) / "tree/a/b/_versions").is_dir()


def test_shallow_clones(path: str, tmp_path: Path) -> None:
    source = DatasetVersion.open(path)
    ours = source.shallow_clone(str(tmp_path / "ours.lance"))
    assert (ours.version, ours.branch) == (3, None)
    assert _ids(lance.dataset(ours.uri)) == _ids(source)
    lance.dataset(ours.uri).delete("id = 0")
    theirs = lance.dataset(ours.uri).shallow_clone(str(tmp_path / "theirs.lance"), 4)
    clone = DatasetVersion.open(theirs.uri)
    assert _ids(clone) == [i for i in range(1, 20) if i != 5]
    assert len(clone.snapshot.manifest.base_paths) == 2
    clone = DatasetVersion(write_dataset(pa.table({"id": [100]}), theirs.uri, "append")).delete("id = 1")
    again = clone.shallow_clone(str(tmp_path / "again.lance"))
    assert _ids(lance.dataset(again.uri)) == _ids(again) == [2, 3, 4, *range(6, 20), 100]
    assert len(again.snapshot.manifest.base_paths) == 3
    assert _ids(source) == [i for i in range(20) if i != 5]
    with pytest.raises(Exception, match="A dataset already exists"):
        source.shallow_clone(again.uri)


def test_clones_of_datasets_with_stable_row_ids_and_indices(tmp_path: Path) -> None:
    path = str(tmp_path / "stable.lance")
    theirs = lance.write_dataset(TABLE, path, enable_stable_row_ids=True)
    theirs.create_scalar_index("id", "BTREE")
    DatasetVersion.open(path).update({"id": "200"}, "id = 3").branches.create("dev")
    branch = lance.dataset(path).checkout_version(("dev", None))
    assert branch.to_table(filter="id = 7").to_pylist() == [{"id": 7}]
    assert branch.to_table(filter="id = 200", with_row_id=True)["_rowid"].to_pylist() == [3]
    ours = DatasetVersion.open(path, branch="dev")
    assert ours.take([3, 8]).to_pylist() == [{"id": 200}, {"id": 8}]
    branch.delete("id = 8")
    assert branch.optimize.compact_files() is not None
    assert _ids(DatasetVersion.open(path, branch="dev")) == [i for i in range(20) if i not in (3, 8)] + [200]


def test_detached_versions_are_read(path: str) -> None:
    theirs = lance.dataset(path)
    fragments = theirs.get_fragments()
    operation = lance.LanceOperation.Delete([], [fragments[0].fragment_id], "true")
    detached = lance.LanceDataset.commit(theirs, operation, read_version=3, detached=True)
    assert detached.version > 2**63
    ours = DatasetVersion.open(path, detached.version)
    assert _ids(ours) == list(range(10, 20)) == _ids(detached)
    assert DatasetVersion.open(path).version == 3
    assert DatasetVersion.open(path).delete("id = 9").version == 4
    # They are not old, but outside of the history.
    DatasetVersion.open(path).cleanup(datetime.timedelta(0))
    assert _ids(DatasetVersion.open(path, detached.version)) == list(range(10, 20))


@pytest.mark.parametrize("by", ["ours", "theirs"])
def test_cleaning_up_respects_branches(path: str, by: str) -> None:
    ours = DatasetVersion.open(path)
    if by == "ours":
        ours.branches.create("dev", 2)
    else:
        lance.dataset(path).create_branch("dev", 2)
    dev = DatasetVersion.open(path, branch="dev").delete("id = 0")
    dev.branches.create("child", 2)
    dev.delete("id = 2")
    ours = ours.compact().delete("id = 4")
    report = ours.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert 2 not in report.versions
    assert 1 in report.versions
    assert report.versions
    # The version that they began with is needed by others, the one after it is not.
    report = dev.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert report.versions == (3,)
    for name, missing in (("dev", [0, 2]), ("child", [])):
        expected = [i for i in range(20) if i not in missing]
        assert _ids(DatasetVersion.open(path, branch=name)) == expected
        assert _ids(lance.dataset(path).checkout_version((name, None))) == expected
    assert _ids(DatasetVersion.open(path)) == [i for i in range(20) if i not in (4, 5)]


def test_files_of_branches_stay_even_if_their_first_version_is_gone(path: str) -> None:
    ours = DatasetVersion.open(path)
    ours.branches.create("dev", 2)
    (Path(path) / "_versions" / f"{2**64 - 1 - 2}.manifest").unlink()
    ours = ours.compact()
    ours.cleanup(datetime.timedelta(0), delete_unverified=True)
    assert _ids(DatasetVersion.open(path, branch="dev")) == list(range(20))


@pytest.fixture
def branched() -> DatasetVersion:
    dataset = DatasetVersion(write_dataset(TABLE, MemoryStore("m")))
    dataset.branches.create("dev")
    return dataset


def _open(dataset: DatasetVersion, **choice: object) -> DatasetVersion:
    return DatasetVersion.open(dataset.snapshot.store, **choice)  # type: ignore[arg-type]


def test_choosing_versions_of_branches(branched: DatasetVersion) -> None:
    dev = _open(branched, branch="dev").delete("id = 0")
    assert _open(branched, branch="main").version == 1
    assert _open(branched, branch="dev", version=1).count_rows() == 20
    now = datetime.datetime.now(datetime.UTC)
    assert _open(branched, branch="dev", as_of=now).version == 2
    dev.tags.create("new")
    branched.tags.create("old")
    assert _open(branched, tag="new").branch == "dev"
    assert _open(branched, tag="new", branch="dev").version == 2
    with pytest.raises(VersionNotFoundError, match="is on the main branch"):
        _open(branched, tag="old", branch="dev")
    with pytest.raises(VersionNotFoundError, match=r"Branch 'prod' not found.* Available branches: dev"):
        _open(branched, branch="prod")
    with pytest.raises(VersionNotFoundError, match="Version 7 not found"):
        _open(branched, branch="dev", version=7)
    with pytest.raises(BranchExistsError, match="'dev' already exists"):
        branched.branches.create("dev")
    restored = dev.restore(1)
    assert (restored.version, restored.branch, restored.count_rows()) == (3, "dev", 20)


def test_branches_inside_the_folders_of_others(branched: DatasetVersion) -> None:
    branched.branches.create("dev/data")
    _open(branched, branch="dev/data").delete("id = 1")
    _open(branched, branch="dev").delete("id = 2")
    branched.branches.delete("dev")
    assert _open(branched, branch="dev/data").count_rows() == 19
    branched.branches.create("dev")
    assert _open(branched, branch="dev").count_rows() == 20
    branched.branches.delete("dev/data")
    assert _open(branched, branch="dev").count_rows() == 20
    branched.branches.delete("dev")
    assert not [path for path in branched.snapshot.store.list("") if path.startswith("tree/")]


@pytest.mark.parametrize(
    "name", ["", "main", "a//b", "/a", "a/", "a..b", "a b", "a\\b", "x.lock", ".", "a/../b"]
)
def test_names_that_cannot_be_branches(branched: DatasetVersion, name: str) -> None:
    with pytest.raises(ValueError, match="not a valid branch name"):
        branched.branches.create(name)


def test_an_interrupted_creation_can_be_undone(branched: DatasetVersion) -> None:
    class Dying(MemoryStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if path.startswith("tree/"):
                raise KeyboardInterrupt
            super().put_if_absent(path, data)

    store = Dying("d")
    dataset = DatasetVersion(write_dataset(TABLE, store))
    with pytest.raises(KeyboardInterrupt):
        dataset.branches.create("dev")
    assert dataset.branches.list() == []
