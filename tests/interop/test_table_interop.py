"""Tables written by pylance are understood, and what we commit is understood by pylance."""

from __future__ import annotations

import dataclasses
import datetime
import shutil
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, IncompatibleChangeError, RowNotFoundError
from lance_engine.format.manifest import DataFile, DeletionKind, Fragment
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.io.manifest_names import NamingScheme
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import list_versions, open_snapshot, read_latest
from lance_engine.write.dataset import write_dataset


def _numbers(start: int, stop: int) -> pa.Table:
    values = np.arange(start, stop, dtype=np.int64)
    return pa.table({"a": values, "s": pa.StructArray.from_arrays([pa.array(values * 2)], ["x"])})


def _write(path: Path, data: pa.Table, **options: Any) -> Any:
    options = {"data_storage_version": "2.1", **options}
    return lance.write_dataset(data, str(path), **options)


def _check_against_pylance(path: Path) -> Snapshot:
    """Rows, deletions and row ids of the latest version as pylance sees them."""
    snapshot = open_snapshot(path)
    oracle = lance.dataset(str(path))
    assert snapshot.version == oracle.version
    assert snapshot.schema.to_arrow().equals(oracle.schema, check_metadata=True)
    assert snapshot.num_rows == oracle.count_rows()
    assert [fragment.id for fragment in snapshot.fragments] == [
        fragment.fragment_id for fragment in oracle.get_fragments()
    ]
    rows = oracle.scanner(columns=[], with_row_id=True, with_row_address=True).to_table()
    ids, addresses = [], []
    for fragment in snapshot.fragments:
        live = np.ones(fragment.physical_rows, dtype=np.bool_)
        deleted = snapshot.deleted_rows(fragment)
        if deleted is not None:
            live[deleted] = False
        ids.append(snapshot.row_ids(fragment)[live])
        addresses.append((fragment.id << 32) + np.flatnonzero(live))
        for file in fragment.files:
            store, name = snapshot.data_file_location(file)
            assert file.file_size in (None, store.size(name))
    if snapshot.fragments:
        all_ids, all_addresses = np.concatenate(ids), np.concatenate(addresses)
        assert all_ids.tolist() == rows["_rowid"].to_pylist()
        assert all_addresses.tolist() == rows["_rowaddr"].to_pylist()
        order = np.random.default_rng(0).permutation(len(all_ids))
        assert np.array_equal(snapshot.resolve_row_ids(all_ids[order]), all_addresses[order])
    return snapshot


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_fragments_and_their_rows(tmp_path: Path, version: str, stable: bool) -> None:
    path = tmp_path / "t.lance"
    _write(
        path,
        _numbers(0, 100),
        max_rows_per_file=30,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    snapshot = _check_against_pylance(path)
    assert [fragment.physical_rows for fragment in snapshot.fragments] == [30, 30, 30, 10]
    assert {file.storage_version for fragment in snapshot.fragments for file in fragment.files} == {version}
    assert snapshot.has_stable_row_ids == stable


@pytest.mark.parametrize("stable", [False, True])
def test_deletion_files_of_both_kinds(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 30_000), max_rows_per_file=10_000, enable_stable_row_ids=stable)
    dataset.delete("a % 3 = 0 and a < 10000")
    dataset.delete("a >= 10001 and a < 19999")
    snapshot = _check_against_pylance(path)
    kinds = [fragment.deletion_file and fragment.deletion_file.kind for fragment in snapshot.fragments]
    assert kinds == [DeletionKind.ARROW, DeletionKind.BITMAP, None]
    with pytest.raises(RowNotFoundError, match="3"):
        snapshot.resolve_row_ids([1, 3])
    dataset.delete("a >= 0")
    assert _check_against_pylance(path).num_rows == 0


def test_updates_move_rows_and_keep_stable_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 1000), max_rows_per_file=300, enable_stable_row_ids=True)
    dataset.update({"a": "a + 10000"}, where="a % 7 = 0")
    dataset.update({"a": "a + 10000"}, where="a % 5 = 0")
    dataset.merge_insert("a").when_matched_update_all().when_not_matched_insert_all().execute(
        _numbers(995, 1010)
    )
    snapshot = _check_against_pylance(path)
    columns = ["_row_created_at_version", "_row_last_updated_at_version"]
    rows = lance.dataset(str(path)).to_table(columns=columns)
    created, updated = [], []
    for fragment in snapshot.fragments:
        deleted = snapshot.deleted_rows(fragment)
        keep = np.setdiff1d(np.arange(fragment.physical_rows), [] if deleted is None else deleted)
        created += snapshot.created_at_versions(fragment)[keep].tolist()
        updated += snapshot.last_updated_at_versions(fragment)[keep].tolist()
    assert created == rows[columns[0]].to_pylist()
    assert updated == rows[columns[1]].to_pylist()


def test_compaction_of_stable_row_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 1000), max_rows_per_file=100, enable_stable_row_ids=True)
    dataset.delete("a % 2 = 0 and a < 500 or a % 20 = 1")
    dataset.update({"a": "a + 10000"}, where="a % 7 = 0")
    lance.dataset(str(path)).optimize.compact_files(target_rows_per_fragment=1000)
    _check_against_pylance(path)


def test_added_and_dropped_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 50), max_rows_per_file=30)
    dataset.add_columns({"b": "a + 1"})
    snapshot = _check_against_pylance(path)
    assert [[file.fields for file in fragment.files] for fragment in snapshot.fragments] == [
        [(0, 2), (3,)]
    ] * 2
    dataset.drop_columns(["a"])
    dataset.alter_columns({"path": "b", "name": "c", "nullable": True})
    snapshot = _check_against_pylance(path)
    assert [(node.name, node.id) for node in snapshot.schema.walk()] == [("s", 1), ("x", 2), ("c", 3)]


def test_every_version_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    _write(path, _numbers(0, 10))
    _write(path, _numbers(10, 20), mode="append")
    _write(path, _numbers(0, 5), mode="overwrite")
    assert [open_snapshot(path, version).num_rows for version in (1, 2, 3)] == [10, 20, 5]
    oracle: dict[int, Any] = {
        entry["version"]: entry["timestamp"] for entry in lance.dataset(str(path)).versions()
    }
    for version, timestamp in oracle.items():
        ours = open_snapshot(path, version).manifest.committed_at.replace(tzinfo=None)
        # The oracle goes through floating-point seconds.
        assert abs(ours - timestamp) <= datetime.timedelta(microseconds=2)


def test_the_older_naming_of_manifests(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    _write(path, _numbers(0, 10), enable_v2_manifest_paths=False)
    _write(path, _numbers(10, 20), mode="append", enable_v2_manifest_paths=False)
    versions = list_versions(_check_against_pylance(path).store)
    assert versions is not None
    assert (versions.scheme, versions.versions) == (NamingScheme.V1, (1, 2))
    commit(path, Append((_copied_fragment(path, "mine"),)), read_version=2)
    assert _check_against_pylance(path).num_rows == 30


def _copied_fragment(path: Path, name: str) -> Fragment:
    """A new fragment whose file is a copy of one that pylance wrote into the dataset."""
    fragment = open_snapshot(path).fragments[0]
    (file,) = fragment.files
    shutil.copy(path / "data" / file.path, path / "data" / f"{name}.lance")
    return Fragment(0, (dataclasses.replace(file, path=f"{name}.lance"),), fragment.physical_rows)


@pytest.mark.parametrize("stable", [False, True])
def test_pylance_goes_on_with_what_we_appended(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t.lance"
    _write(path, _numbers(0, 10), enable_stable_row_ids=stable)
    stale = lance.dataset(str(path))
    assert commit(path, Append((_copied_fragment(path, "mine"),)), read_version=1).version == 2
    _check_against_pylance(path)
    # A writer that has not seen our version yet rebases over it.
    stale.delete("a = 3")
    assert stale.version == 3
    _check_against_pylance(path)
    _write(path, _numbers(20, 30), mode="append")
    lance.dataset(str(path)).delete("a >= 5 and a < 10")
    lance.dataset(str(path)).update({"a": "a + 100"}, where="a < 3")
    commit(path, Append((_copied_fragment(path, "more"),)), read_version=2)
    snapshot = _check_against_pylance(path)
    assert snapshot.version == 7
    # The first copy of row 3 was deleted after our append, the second came with it.
    assert snapshot.num_rows == lance.dataset(str(path)).to_table().num_rows == 10 + 10 + 10 + 10 - 1 - 10
    lance.dataset(str(path)).optimize.compact_files()
    _check_against_pylance(path)


def test_pylance_goes_on_with_what_we_created(tmp_path: Path) -> None:
    source, path = tmp_path / "source.lance", tmp_path / "t.lance"
    _write(source, _numbers(0, 10))
    (file,) = open_snapshot(source).fragments[0].files
    (path / "data").mkdir(parents=True)
    shutil.copy(source / "data" / file.path, path / "data" / file.path)
    schema = Schema.from_arrow(_numbers(0, 1).schema.with_metadata({"owner": "me"}))
    overwrite = Overwrite((Fragment(0, (file,), 10),), schema, {"lance.x": "1"})
    commit(path, overwrite, read_version=0, options=CreateOptions(stable_row_ids=True))
    dataset = lance.dataset(str(path))
    assert dataset.to_table().replace_schema_metadata(None).equals(_numbers(0, 10))
    assert dataset.schema.metadata == {b"owner": b"me"}
    assert dataset.data_storage_version == "2.1"
    _check_against_pylance(path)
    _write(path, _numbers(10, 20), mode="append")
    lance.dataset(str(path)).create_scalar_index("a", "BTREE")
    with_index = _check_against_pylance(path)
    assert with_index.index_section
    # An append keeps the index, an overwrite removes it.
    commit(path, Append((_copied_fragment(path, "mine"),)), read_version=with_index.version)
    assert [index.name for index in lance.dataset(str(path)).describe_indices()] == ["a_idx"]
    assert lance.dataset(str(path)).to_table(filter="a = 3").num_rows == 2
    commit(path, Overwrite((_copied_fragment(path, "last"),), schema), read_version=with_index.version + 1)
    assert lance.dataset(str(path)).describe_indices() == []
    assert _check_against_pylance(path).num_rows == 10


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pylance_works_on_tables_that_we_wrote(tmp_path: Path, version: str) -> None:
    path = tmp_path / "t.lance"
    write_dataset(_numbers(0, 1000), path, data_storage_version=version, max_rows_per_file=300)
    dataset: Any = lance.dataset(str(path))
    dataset.delete("a % 10 = 0")
    write_dataset(_numbers(1000, 1100), path, mode="append")
    dataset.update({"a": "a + 10000"}, where="a % 7 = 0")
    dataset = lance.dataset(str(path))
    dataset.add_columns({"b": "a + 1"})
    write_dataset(_numbers(0, 10).append_column("b", pa.array([0] * 10, pa.int64())), path, mode="append")
    assert _check_against_pylance(path).num_rows == 900 + 100 + 10
    dataset = lance.dataset(str(path))
    dataset.optimize.compact_files()
    _check_against_pylance(path)
    write_dataset(_numbers(0, 5), path, mode="overwrite")
    assert _check_against_pylance(path).num_rows == 5
    assert lance.dataset(str(path)).to_table().replace_schema_metadata(None) == _numbers(0, 5)


def test_conflicts_with_what_pylance_committed(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    _write(path, _numbers(0, 10), max_rows_per_file=10)
    append = Append((_copied_fragment(path, "mine"),))
    dataset: Any = lance.dataset(str(path))
    dataset.delete("a = 1")
    dataset.update({"a": "a + 100"}, where="a = 2")
    dataset.create_scalar_index("a", "BTREE")
    dataset.update_config({"lance.x": "1"})
    dataset.drop_columns(["s"])
    assert commit(path, append, read_version=1).version == 7
    dataset = lance.dataset(str(path))
    dataset.add_columns({"b": "a + 1"})
    with pytest.raises(CommitConflictError, match=r"'merge'.*version 8"):
        commit(path, append, read_version=7)
    dataset.restore()
    _write(path, _numbers(0, 10), mode="overwrite")
    latest = open_snapshot(path).version
    with pytest.raises(IncompatibleChangeError):
        commit(path, append, read_version=8)
    with pytest.raises(CommitConflictError, match="'overwrite'"):
        commit(path, Overwrite((), Schema(())), read_version=8)
    assert open_snapshot(path).version == latest


def test_manifests_are_rewritten_without_loss(tmp_path: Path) -> None:
    from lance_engine.format.manifest import serialize_manifest_file
    from lance_engine.format.pb import table_pb2

    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 100), max_rows_per_file=30, enable_stable_row_ids=True)
    dataset.delete("a < 10")
    dataset.update_config({"lance.x": "1"})
    dataset.update_metadata({"k": "v"})
    dataset.create_scalar_index("a", "BTREE")
    stored = read_latest(open_snapshot(path).store)
    assert stored is not None
    original = (path / NamingScheme.V2.path(stored.manifest.version)).read_bytes()
    again = serialize_manifest_file(
        stored.manifest, index_section=stored.index_section, transaction=stored.transaction
    )

    def message(data: bytes) -> Any:
        position = int.from_bytes(data[-16:-8], "little")
        return table_pb2.Manifest.FromString(data[position + 4 : -16])

    assert message(again) == message(original)


def test_unknown_row_counts_are_read_from_the_files(tmp_path: Path) -> None:
    from lance_engine.format.manifest import serialize_manifest_file

    path = tmp_path / "t.lance"
    _write(path, _numbers(0, 100), max_rows_per_file=30)
    snapshot = open_snapshot(path)
    unknown = tuple(dataclasses.replace(fragment, physical_rows=0) for fragment in snapshot.fragments)
    manifest = dataclasses.replace(snapshot.manifest, fragments=unknown)
    (path / NamingScheme.V2.path(1)).write_bytes(serialize_manifest_file(manifest))
    assert [fragment.physical_rows for fragment in open_snapshot(path).fragments] == [30, 30, 30, 10]
    assert open_snapshot(path).num_rows == 100


def test_shallow_clones_read_the_files_of_their_source(tmp_path: Path) -> None:
    path, clone = tmp_path / "t.lance", tmp_path / "clone.lance"
    dataset = _write(path, _numbers(0, 10))
    dataset.delete("a = 4")
    dataset.shallow_clone(str(clone), dataset.version)
    snapshot = open_snapshot(clone)
    (fragment,) = snapshot.fragments
    store, name = snapshot.data_file_location(fragment.files[0])
    assert store.local_path(name) == str(path / "data" / fragment.files[0].path)
    deleted = snapshot.deleted_rows(fragment)
    assert deleted is not None
    assert deleted.tolist() == [4]
    commit(clone, Append(()), read_version=snapshot.version)
    assert lance.dataset(str(clone)).to_table().num_rows == 9


def test_data_files_are_described_as_pylance_does(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    dataset = _write(path, _numbers(0, 10))
    (theirs,) = dataset.get_fragments()[0].data_files()
    (ours,) = open_snapshot(path).fragments[0].files
    assert ours == DataFile(
        theirs.path,
        tuple(theirs.fields),
        tuple(theirs.column_indices),
        theirs.file_major_version,
        theirs.file_minor_version,
        theirs.file_size_bytes,
    )
