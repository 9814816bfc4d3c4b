"""Commits on a store in memory: what the manifest says afterwards, conflicts, retries."""

from __future__ import annotations

import dataclasses
import json
import uuid
from pathlib import Path
from typing import Any

import lance_engine
import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import (
    CommitConflictError,
    CorruptFileError,
    DatasetExistsError,
    DatasetNotFoundError,
    IncompatibleChangeError,
    RowNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lance_engine.format.deletion import encode_deletions
from lance_engine.format.manifest import (
    BasePath,
    DataFile,
    DeletionFile,
    DeletionKind,
    Fragment,
    Manifest,
    parse_manifest_file,
    serialize_manifest_file,
)
from lance_engine.format.row_ids import encode_row_ids
from lance_engine.format.transaction import (
    Append,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Transaction,
    parse_transaction,
    serialize_transaction,
)
from lance_engine.io import LocalStore, MemoryStore, Store
from lance_engine.io.manifest_names import NamingScheme, parse_manifest_name
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import list_versions, open_snapshot
from row_id_values import decode_row_ids

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64())], metadata={"owner": "me"}))


def _fragment(name: str = "x", rows: int = 10, minor: int = 1) -> Fragment:
    return Fragment(0, (DataFile(f"{name}.lance", (0,), (0,), 2, minor, 100),), rows)


def _create(store: Store, *fragments: Fragment, **options: Any) -> Snapshot:
    return commit(store, Overwrite(fragments, SCHEMA), read_version=0, options=CreateOptions(**options))


def _put_version(store: Store, manifest: Manifest, operation: Operation | None = None) -> None:
    """The commit of another writer: any manifest, with any transaction."""
    content = None
    if operation is not None:
        content = serialize_transaction(
            Transaction(manifest.version - 1, f"other-{manifest.version}", operation)
        )
    path = NamingScheme.V2.path(manifest.version)
    store.put_if_absent(path, serialize_manifest_file(manifest, transaction=content))


def _others_commit(store: Store, *operations: Operation, **changes: Any) -> None:
    for operation in operations:
        manifest = open_snapshot(store).manifest
        _put_version(store, dataclasses.replace(manifest, version=manifest.version + 1, **changes), operation)


def test_creating_writes_version_one() -> None:
    store = MemoryStore()
    snapshot = _create(store, _fragment("x"), _fragment("y", 5))
    assert snapshot.version == 1
    assert [fragment.id for fragment in snapshot.fragments] == [0, 1]
    assert snapshot.num_rows == 15
    manifest = snapshot.manifest
    assert (manifest.max_fragment_id, manifest.storage_version) == (1, "2.1")
    assert (manifest.reader_feature_flags, manifest.writer_feature_flags) == (0, 0)
    assert manifest.writer_version is not None
    assert (manifest.writer_version.library, manifest.writer_version.version) == (
        "lance-sql",
        lance_engine.__version__,
    )
    path = "_versions/18446744073709551614.manifest"
    assert store.list("") == [f"_transactions/{manifest.transaction_file}", path]
    opened = open_snapshot(store)
    assert opened.manifest == manifest
    _, _, inline = parse_manifest_file(store.read(path))
    assert inline == store.read(f"_transactions/{manifest.transaction_file}")
    assert inline is not None
    transaction = parse_transaction(inline)
    assert transaction.read_version == 0
    assert transaction.operation == Overwrite((_fragment("x"), _fragment("y", 5)), SCHEMA)


def test_an_empty_dataset_has_no_highest_fragment() -> None:
    store = MemoryStore()
    assert _create(store).manifest.max_fragment_id is None
    assert open_snapshot(store).num_rows == 0
    assert commit(store, Append((_fragment(),)), read_version=1).manifest.max_fragment_id == 0


def test_appending_continues_the_fragment_ids() -> None:
    store = MemoryStore()
    _create(store, _fragment("x"))
    commit(store, Append((_fragment("y"),)), read_version=1)
    snapshot = commit(store, Append((_fragment("z"), _fragment("w"))), read_version=2, properties={"k": "v"})
    assert [(fragment.id, fragment.files[0].path) for fragment in snapshot.fragments] == [
        (0, "x.lance"),
        (1, "y.lance"),
        (2, "z.lance"),
        (3, "w.lance"),
    ]
    _, _, inline = parse_manifest_file(store.read(NamingScheme.V2.path(3)))
    assert inline is not None
    assert parse_transaction(inline).properties == {"k": "v"}


def test_overwriting_replaces_rows_and_schema_but_not_the_history() -> None:
    store = MemoryStore()
    first = _create(store, _fragment("x"))
    kept = dataclasses.replace(first.manifest, version=2, config={"a": "1"}, table_metadata={"t": "1"})
    store.put_if_absent(
        NamingScheme.V2.path(2),
        serialize_manifest_file(
            kept,
            index_section=b"",
            transaction=serialize_transaction(
                Transaction(1, "u", OtherOperation(OperationKind.CREATE_INDEX, b""))
            ),
        ),
    )
    schema = Schema.from_arrow(pa.schema([("b", pa.string())]))
    appended = commit(store, Append((_fragment("y"),)), read_version=2)
    assert open_snapshot(store).index_section == b""
    snapshot = commit(store, Overwrite((_fragment("z", 3),), schema, {"b": "2"}), read_version=3)
    assert snapshot.version == 4
    assert snapshot.schema == schema
    assert [fragment.id for fragment in snapshot.fragments] == [2]
    assert snapshot.manifest.config == {"a": "1", "b": "2"}
    assert snapshot.manifest.table_metadata == {"t": "1"}
    assert snapshot.manifest.writer_feature_flags == 8
    assert open_snapshot(store).index_section is None
    assert open_snapshot(store, 3).num_rows == appended.num_rows == 20


def test_the_storage_version_is_that_of_the_files_unless_asked_for() -> None:
    assert _create(MemoryStore()).manifest.storage_version == "2.1"
    assert _create(MemoryStore(), _fragment(minor=2)).manifest.storage_version == "2.2"
    store = MemoryStore()
    asked = _create(store, _fragment(minor=1), storage_version="2.2")
    assert (asked.manifest.storage_version, asked.manifest.reader_feature_flags) == ("2.2", 256)
    replaced = commit(store, Overwrite((_fragment(minor=1),), SCHEMA), read_version=1)
    assert replaced.manifest.storage_version == "2.1"
    mixed = commit(store, Append((_fragment(minor=2),)), read_version=2)
    assert (mixed.manifest.storage_version, mixed.manifest.writer_feature_flags & 256) == ("2.1", 256)
    old = Fragment(0, (DataFile("o.lance", (0,), (), 0, 2),), 5)
    with pytest.raises(UnsupportedFeatureError, match=r"version 0\.1"):
        commit(store, Append((old,)), read_version=3)


def test_stable_row_ids_are_given_at_commit() -> None:
    store = MemoryStore()
    first = _create(store, _fragment(rows=4), _fragment(rows=3), stable_row_ids=True)
    assert first.manifest.reader_feature_flags == first.manifest.writer_feature_flags == 2
    second = commit(store, Append((_fragment(rows=2),)), read_version=1)
    assert [second.row_ids(fragment).tolist() for fragment in second.fragments] == [
        [0, 1, 2, 3],
        [4, 5, 6],
        [7, 8],
    ]
    assert [second.created_at_versions(fragment).tolist() for fragment in second.fragments][1:] == [
        [1] * 3,
        [2] * 2,
    ]
    assert second.last_updated_at_versions(second.fragments[2]).tolist() == [2, 2]
    assert second.manifest.next_row_id == 9
    third = commit(store, Overwrite((_fragment(rows=2),), SCHEMA), read_version=2)
    assert third.row_ids(third.fragments[0]).tolist() == [9, 10]
    assert third.has_stable_row_ids
    _, _, inline = parse_manifest_file(store.read(NamingScheme.V2.path(2)))
    assert inline is not None
    operation = parse_transaction(inline).operation
    assert isinstance(operation, Append)
    assert operation.fragments[0].row_ids is None


def test_row_ids_are_assigned_anew_after_others_committed() -> None:
    store = MemoryStore()
    _create(store, _fragment(rows=4), stable_row_ids=True)
    commit(store, Append((_fragment(rows=5),)), read_version=1)
    late = commit(store, Append((_fragment(rows=2),)), read_version=1)
    assert late.version == 3
    assert late.row_ids(late.fragments[2]).tolist() == [9, 10]
    assert late.fragments[2].id == 2


def test_conflicts_name_version_and_operation() -> None:
    store = MemoryStore()
    _create(store, _fragment())
    _others_commit(store, OtherOperation(OperationKind.DELETE, b""), OtherOperation(OperationKind.MERGE, b""))
    with pytest.raises(
        CommitConflictError, match=r"'append' based on version 1 .*'merge'.*version 3"
    ) as conflict:
        commit(store, Append((_fragment(),)), read_version=1)
    assert conflict.value.place["version"] == 3
    assert conflict.value.place["operation"] == "merge"
    _others_commit(store, Overwrite((), SCHEMA))
    with pytest.raises(IncompatibleChangeError, match=r"'overwrite'.*version 4"):
        commit(store, Append((_fragment(),)), read_version=3)
    # Only the transaction of the first commit is left: the failed ones cleaned up.
    assert len(store.list("_transactions")) == 1
    assert commit(store, Append((_fragment(),)), read_version=4).version == 5


def test_transactions_may_lie_in_a_file_of_their_own() -> None:
    store = MemoryStore()
    manifest = _create(store, _fragment()).manifest
    transaction = Transaction(1, "other", Overwrite((), SCHEMA))
    store.put(f"_transactions/{transaction.file_name}", serialize_transaction(transaction))
    _put_version(store, dataclasses.replace(manifest, version=2, transaction_file=transaction.file_name))
    with pytest.raises(IncompatibleChangeError):
        commit(store, Append((_fragment(),)), read_version=1)
    store.delete(f"_transactions/{transaction.file_name}")
    with pytest.raises(CommitConflictError, match="missing its transaction file"):
        commit(store, Append((_fragment(),)), read_version=1)


def test_versions_without_a_known_change_are_conflicts() -> None:
    store = MemoryStore()
    manifest = _create(store, _fragment()).manifest
    _put_version(store, dataclasses.replace(manifest, version=2, transaction_file=""))
    with pytest.raises(CommitConflictError, match="version 2 has no transaction"):
        commit(store, Append((_fragment(),)), read_version=1)
    commit(store, Append((_fragment(),)), read_version=2)
    store.delete(NamingScheme.V2.path(2))
    with pytest.raises(CommitConflictError, match="version 2 was cleaned up"):
        commit(store, Append((_fragment(),)), read_version=1)


def test_creating_twice_and_committing_to_nothing_are_errors() -> None:
    store = MemoryStore()
    with pytest.raises(DatasetNotFoundError):
        commit(store, Append((_fragment(),)), read_version=0)
    with pytest.raises(DatasetNotFoundError):
        commit(store, Overwrite((), SCHEMA), read_version=3)
    _create(store)
    with pytest.raises(DatasetExistsError):
        _create(store)
    with pytest.raises(VersionNotFoundError, match="the latest version is 1"):
        commit(store, Append((_fragment(),)), read_version=2)
    with pytest.raises(UnsupportedFeatureError, match="'restore'"):
        commit(store, OtherOperation(OperationKind.RESTORE, b""), read_version=1)
    assert len(store.list("_transactions")) == 1


def test_unknown_writer_flags_refuse_commits() -> None:
    store = MemoryStore()
    _put_version(store, Manifest(1, SCHEMA, (), writer_feature_flags=8192))
    assert open_snapshot(store).num_rows == 0
    with pytest.raises(UnsupportedFeatureError, match="8192"):
        commit(store, Append((_fragment(),)), read_version=1)


def test_transaction_files_can_be_disabled() -> None:
    store = MemoryStore()
    _put_version(store, Manifest(1, SCHEMA, (), storage_version="2.1", writer_feature_flags=32))
    snapshot = commit(store, Append((_fragment(),)), read_version=1)
    assert snapshot.manifest.transaction_file == ""
    assert snapshot.manifest.writer_feature_flags == 32
    assert store.list("_transactions") == []


class RacingStore(MemoryStore):
    """Another writer commits `rivals` operations just before ours."""

    def __init__(self, rivals: int) -> None:
        super().__init__()
        self.rivals = rivals

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.rivals and self.exists(NamingScheme.V2.path(1)):
            self.rivals -= 1
            manifest = open_snapshot(self).manifest
            changed = dataclasses.replace(manifest, version=manifest.version + 1)
            content = serialize_transaction(Transaction(1, f"rival {self.rivals}", Append(())))
            target = NamingScheme.V2.path(changed.version)
            super().put_if_absent(target, serialize_manifest_file(changed, transaction=content))
        super().put_if_absent(path, data)


def test_lost_races_are_retried() -> None:
    store = RacingStore(3)
    _create(store, _fragment())
    snapshot = commit(store, Append((_fragment(),)), read_version=1)
    assert snapshot.version == 5
    assert len(snapshot.fragments) == 2
    assert len(store.list("_transactions")) == 2


def test_giving_up_leaves_no_transaction_file() -> None:
    store = RacingStore(100)
    _create(store, _fragment())
    with pytest.raises(CommitConflictError, match="3 times in a row"):
        commit(store, Append((_fragment(),)), read_version=1, max_attempts=3)
    assert len(store.list("_transactions")) == 1


class ForgetfulStore(MemoryStore):
    """Carries a request out, loses the answer, and reports a conflict when the request is repeated."""

    forget = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        super().put_if_absent(path, data)
        if self.forget:
            raise FileExistsError(path)


def test_our_own_commit_is_recognised_after_a_lost_answer() -> None:
    store = ForgetfulStore()
    _create(store, _fragment())
    store.forget = True
    snapshot = commit(store, Append((_fragment(),)), read_version=1)
    assert snapshot.version == 2
    assert list_versions(store).versions == (1, 2)  # type: ignore[union-attr]
    assert len(store.list("_transactions")) == 2


@pytest.mark.parametrize("others", [0, 1, 3])
def test_our_own_creation_is_recognised_after_a_lost_answer(others: int) -> None:
    """Also if others have changed the dataset since; what somebody else created is not ours."""

    class Forgetful(MemoryStore):
        creations = 0

        def put_if_absent(self, path: str, data: bytes) -> None:
            super().put_if_absent(path, data)
            if path == NamingScheme.V2.path(1):
                self.creations += 1
                _others_commit(self, *[Append(())] * others)
                raise FileExistsError(path)

    store = Forgetful()
    snapshot = _create(store, _fragment())
    assert snapshot.version == 1
    assert list_versions(store).versions == tuple(range(1, others + 2))  # type: ignore[union-attr]
    with pytest.raises(DatasetExistsError):
        _create(store, _fragment())
    assert store.creations == 1


def test_local_commits_leave_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalStore(tmp_path)
    _create(store)
    hint = tmp_path / "_versions" / "latest_version_hint.json"
    assert json.loads(hint.read_text()) == {"version": 1}
    monkeypatch.setenv("LANCE_USE_VERSION_HINT", "0")
    commit(store, Append((_fragment(),)), read_version=1)
    assert json.loads(hint.read_text()) == {"version": 1}
    hint.write_text("junk")
    assert open_snapshot(tmp_path).version == 2


def test_commits_on_object_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    # The fsspec memory file system creates files atomically, as object stores do.
    monkeypatch.setattr("lance_engine.io.fsspec_store.CONDITIONAL_PUT", frozenset({"memory"}))
    uri = f"memory://{uuid.uuid4().hex}/t.lance"
    with pytest.raises(DatasetNotFoundError):
        open_snapshot(uri)
    commit(uri, Overwrite((_fragment(),), SCHEMA), read_version=0)
    late = commit(uri, Append((_fragment(),)), read_version=1)
    assert commit(uri, Append((_fragment(),)), read_version=1).version == 3
    assert open_snapshot(uri).num_rows == 30
    assert open_snapshot(uri, 2).manifest == late.manifest
    assert not late.store.exists("_versions/latest_version_hint.json")


# ---- versions ---------------------------------------------------------------------------------


def test_manifest_names() -> None:
    assert NamingScheme.V2.path(1) == "_versions/18446744073709551614.manifest"
    assert NamingScheme.V1.path(12) == "_versions/12.manifest"
    assert NamingScheme.V2.path(2**63 + 5) == "_versions/d9223372036854775813.manifest"
    assert parse_manifest_name("18446744073709551614.manifest") == (1, NamingScheme.V2)
    assert parse_manifest_name("00000000000000000000.manifest") == (2**64 - 1, NamingScheme.V2)
    assert parse_manifest_name("7.manifest") == (7, NamingScheme.V1)
    for name in (
        "x.manifest",
        ".tmp1",
        "7.manifest#1",
        "7.manifest-uuid",
        "d9.manifest",
        "manifest",
        "-1.manifest",
    ):
        assert parse_manifest_name(name) is None


def test_versions_are_opened_by_number_or_the_latest() -> None:
    store = MemoryStore("t")
    with pytest.raises(DatasetNotFoundError, match="memory://t"):
        open_snapshot(store)
    with pytest.raises(DatasetNotFoundError):
        open_snapshot(store, 3)
    _create(store)
    for version in range(1, 5):
        commit(store, Append(()), read_version=version)
    store.put("_versions/x.manifest", b"junk")
    store.delete(NamingScheme.V2.path(3))
    assert open_snapshot(store).version == 5
    assert open_snapshot(store, 2).version == 2
    for version in (3, 6, 0, -1, 2**70):
        with pytest.raises(VersionNotFoundError, match="Available versions: 1-2, 4-5"):
            open_snapshot(store, version)


def test_the_older_naming_scheme_is_kept() -> None:
    store = MemoryStore()
    store.put("_versions/9.manifest", serialize_manifest_file(Manifest(9, SCHEMA, (), storage_version="2.1")))
    store.put(
        "_versions/10.manifest", serialize_manifest_file(Manifest(10, SCHEMA, (), storage_version="2.1"))
    )
    assert open_snapshot(store).version == 10
    assert open_snapshot(store, 9).version == 9
    assert commit(store, Append(()), read_version=10).version == 11
    assert store.exists("_versions/11.manifest")
    store.put(NamingScheme.V2.path(12), serialize_manifest_file(Manifest(12, SCHEMA, ())))
    with pytest.raises(CorruptFileError, match="both manifest naming schemes"):
        open_snapshot(store)
    assert open_snapshot(store, 11).version == 11


def test_detached_versions_are_opened_by_number_only() -> None:
    store = MemoryStore()
    _create(store)
    version = 2**63 + 17
    store.put(NamingScheme.V2.path(version), serialize_manifest_file(Manifest(version, SCHEMA, ())))
    assert open_snapshot(store).version == 1
    assert open_snapshot(store, version).version == version


# ---- row ids and deletions --------------------------------------------------------------------


def _with_deletions(store: Store, *, stable: bool) -> Snapshot:
    manifest = _create(store, _fragment(rows=10), _fragment(rows=5), stable_row_ids=stable).manifest
    first, second = manifest.fragments
    deletion = DeletionFile(DeletionKind.ARROW, 1, 77, 3)
    store.put(
        "_deletions/0-1-77.arrow", encode_deletions(np.array([2, 3, 9], dtype=np.uint32), deletion.kind)
    )
    changed = dataclasses.replace(
        manifest, version=2, fragments=(dataclasses.replace(first, deletion_file=deletion), second)
    )
    _put_version(store, changed)
    return open_snapshot(store)


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_rows_are_not_counted_and_not_found(stable: bool) -> None:
    snapshot = _with_deletions(MemoryStore(), stable=stable)
    first, second = snapshot.fragments
    assert snapshot.num_rows == 12
    deleted = snapshot.deleted_rows(first)
    assert deleted is not None
    assert deleted.tolist() == [2, 3, 9]
    assert snapshot.deleted_rows(second) is None
    ids = snapshot.row_ids(second)
    asked = np.array([ids[1], 0, 0, 8, ids[4]], dtype=np.uint64)
    addresses = snapshot.resolve_row_ids(asked)
    assert addresses.dtype == np.uint64
    assert addresses.tolist() == [2**32 + 1, 0, 0, 8, 2**32 + 4]
    assert snapshot.resolve_row_ids([]).tolist() == []
    with pytest.raises(RowNotFoundError, match=r"3 row ids not found, or deleted: 2, 9, 777777"):
        snapshot.resolve_row_ids([9, 0, 2, 777777, 2])


def test_row_ids_of_some_rows() -> None:
    for stable in (False, True):
        snapshot = _create(MemoryStore(), _fragment(rows=3), _fragment(rows=5), stable_row_ids=stable)
        fragment = snapshot.fragments[1]
        offsets = np.array([4, 0, 0, 2], dtype=np.uint32)
        ids = snapshot.row_ids(fragment, offsets)
        assert ids.dtype == np.uint64
        assert ids.tolist() == snapshot.row_ids(fragment)[offsets].tolist()
        assert snapshot.row_ids(fragment, offsets[:0]).tolist() == []


def test_spilled_lineage_that_no_file_has_is_not_guessed() -> None:
    created = _create(MemoryStore(), _fragment(rows=3), stable_row_ids=True)
    (fragment,) = created.fragments
    spilled = dataclasses.replace(fragment, row_ids=None, created_at_versions=None, has_spilled_lineage=True)
    snapshot = created.with_manifest(dataclasses.replace(created.manifest, fragments=(spilled,)))
    for access in (snapshot.row_ids, snapshot.created_at_versions):
        with pytest.raises(CorruptFileError, match="fragment: 0"):
            access(spilled)
    assert snapshot.last_updated_at_versions(spilled).tolist() == [1, 1, 1]


def test_row_ids_are_addresses_by_default() -> None:
    snapshot = _create(MemoryStore(), _fragment(rows=2), _fragment(rows=2))
    assert not snapshot.has_stable_row_ids
    assert [snapshot.row_ids(fragment).tolist() for fragment in snapshot.fragments] == [
        [0, 1],
        [2**32, 2**32 + 1],
    ]
    assert snapshot.created_at_versions(snapshot.fragments[0]).tolist() == [1, 1]
    with pytest.raises(RowNotFoundError):
        snapshot.resolve_row_ids([2])
    with pytest.raises(RowNotFoundError):
        snapshot.resolve_row_ids([5 << 32])
    with pytest.raises(RowNotFoundError):
        _create(MemoryStore()).resolve_row_ids([0])


def test_row_id_sequences_must_fit_their_fragment() -> None:
    store = MemoryStore()
    manifest = _create(store, _fragment(rows=3), stable_row_ids=True).manifest
    (fragment,) = manifest.fragments
    assert fragment.row_ids is not None
    assert decode_row_ids(fragment.row_ids, 3).tolist() == [0, 1, 2]
    for number, row_ids in enumerate((None, encode_row_ids(np.arange(2, dtype=np.uint64)))):
        damaged = dataclasses.replace(fragment, row_ids=row_ids)
        _put_version(store, dataclasses.replace(manifest, version=2 + number, fragments=(damaged,)))
        snapshot = open_snapshot(store)
        with pytest.raises(CorruptFileError, match="fragment: 0"):
            snapshot.row_ids(snapshot.fragments[0])
        with pytest.raises(CorruptFileError, match="fragment: 0"):
            snapshot.resolve_row_ids([0])


def test_files_may_lie_under_other_base_paths(tmp_path: Path) -> None:
    bases = (BasePath(0, str(tmp_path / "root"), True), BasePath(4, f"file://{tmp_path}/files", False))
    snapshot = Snapshot(LocalStore(tmp_path / "t"), Manifest(1, SCHEMA, (), base_paths=bases))
    file = DataFile("a.lance", (0,), (0,), 2, 1)
    expected = {None: "t/data/a.lance", 0: "root/data/a.lance", 4: "files/a.lance"}
    for base_id, where in expected.items():
        store, path = snapshot.data_file_location(dataclasses.replace(file, base_id=base_id))
        assert store.local_path(path) == str(tmp_path / where)
    with pytest.raises(CorruptFileError, match="base path 9"):
        snapshot.data_file_location(dataclasses.replace(file, base_id=9))


def test_fragments_are_found_by_id() -> None:
    store = MemoryStore()
    _create(store, _fragment("x"))
    snapshot = commit(store, Overwrite((_fragment("y"), _fragment("z")), SCHEMA), read_version=1)
    assert snapshot.fragment(2).files[0].path == "z.lance"
    for missing in (0, 3):
        with pytest.raises(KeyError):
            snapshot.fragment(missing)
