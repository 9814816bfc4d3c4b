"""How each operation changes a manifest, on a store in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    IncompatibleChangeError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lance_engine.format.fragment import DataFile, Fragment
from lance_engine.format.operations import (
    Append,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    OperationKind,
    OtherOperation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Update,
    UpdateConfig,
)
from lance_engine.format.row_ids import decode_versions, encode_row_ids, encode_versions
from lance_engine.format.transaction import Transaction, parse_transaction, serialize_transaction
from lance_engine.io import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.deletions import write_deletions
from lance_engine.table.rebase import TakenRows
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot

SCHEMA = Schema.from_arrow(pa.schema([("a", pa.int64()), ("b", pa.string())], metadata={"owner": "me"}))


def _fragment(name: str, rows: int = 10, fields: tuple[int, ...] = (0, 1), number: int = 0) -> Fragment:
    return Fragment(number, (_file(name, fields),), rows)


def _file(name: str, fields: tuple[int, ...]) -> DataFile:
    return DataFile(f"{name}.lance", fields, tuple(range(len(fields))), 2, 1, 100)


def _created(*fragments: Fragment, stable: bool = False) -> MemoryStore:
    store = MemoryStore()
    options = CreateOptions(stable_row_ids=stable)
    commit(store, Overwrite(fragments, SCHEMA), read_version=0, options=options)
    return store


def _commit(store: MemoryStore, operation: Operation) -> Snapshot:
    return commit(store, operation, read_version=open_snapshot(store).version)


def _without(snapshot: Snapshot, number: int, *offsets: int) -> tuple[Fragment, TakenRows]:
    """A fragment that lost some rows, and what tells a commit which."""
    fragment = snapshot.fragment(number)
    deleted = np.array(offsets, dtype=np.uint32)
    deletion = write_deletions(snapshot.store, number, deleted, snapshot.version)
    updated = Fragment(number, fragment.files, fragment.physical_rows, deletion)
    return updated, TakenRows({number: fragment}, {number: deleted})


def test_a_delete_replaces_and_removes_fragments() -> None:
    store = _created(_fragment("x"), _fragment("y"), _fragment("z"))
    updated, _ = _without(open_snapshot(store), 1, 2, 3)
    snapshot = _commit(store, Delete((updated,), (2, 77), "a > 1"))
    assert [fragment.id for fragment in snapshot.fragments] == [0, 1]
    assert snapshot.num_rows == 18
    assert snapshot.manifest.max_fragment_id == 2
    assert snapshot.manifest.reader_feature_flags == 1
    assert open_snapshot(store).deleted_rows(snapshot.fragment(1)).tolist() == [2, 3]  # type: ignore[union-attr]
    emptied = _commit(store, Delete((), (0, 1)))
    assert (emptied.num_rows, emptied.manifest.max_fragment_id) == (0, 2)
    assert emptied.manifest.reader_feature_flags == 0


@pytest.mark.parametrize("stable", [False, True])
def test_an_update_moves_rows_and_adds_others(stable: bool) -> None:
    store = _created(_fragment("x", 4), _fragment("y", 3), stable=stable)
    _commit(store, Append((_fragment("z", 1),)))
    updated, _ = _without(open_snapshot(store), 0, 1, 3)
    moved = Fragment(
        0,
        (_file("new", (0, 1)),),
        5,
        row_ids=encode_row_ids(np.array([3, 1, 4], dtype=np.uint64)) if stable else None,
        created_at_versions=encode_versions(np.array([1, 1, 2], dtype=np.uint64)) if stable else None,
    )
    snapshot = _commit(store, Update((1,), (updated,), (moved,), (0,)))
    assert [fragment.id for fragment in snapshot.fragments] == [0, 2, 3]
    assert snapshot.num_rows == 2 + 1 + 5
    if not stable:
        assert snapshot.fragment(3).row_ids is None
        return
    assert snapshot.row_ids(snapshot.fragment(3)).tolist() == [3, 1, 4, 8, 9]
    assert snapshot.created_at_versions(snapshot.fragment(3)).tolist() == [1, 1, 2, 3, 3]
    assert snapshot.last_updated_at_versions(snapshot.fragment(3)).tolist() == [3] * 5
    assert snapshot.manifest.next_row_id == 10


def test_an_update_of_columns_in_place_is_refused() -> None:
    store = _created(_fragment("x"))
    with pytest.raises(UnsupportedFeatureError, match="'update'"):
        _commit(store, Update((), (), (), (0,), in_place=True))


def test_a_merge_replaces_fragments_and_schema() -> None:
    store = _created(_fragment("x"))
    schema = Schema((*SCHEMA.fields, Schema.from_arrow(pa.schema([("c", pa.int8())]), 2).fields[0]))
    fragment = Fragment(0, (_file("x", (0, 1)), _file("y", (2,))), 10)
    snapshot = _commit(store, Merge((fragment,), schema, preserves_nullability=True))
    assert snapshot.schema.names == ["a", "b", "c"]
    assert [file.path for file in snapshot.fragments[0].files] == ["x.lance", "y.lance"]


def test_a_projection_drops_files_that_hold_nothing_else() -> None:
    both = Fragment(0, (_file("a", (0,)), _file("b", (1,))), 10)
    store = _created(both, _fragment("ab"))
    schema = Schema(SCHEMA.fields[:1])
    snapshot = _commit(store, Project(schema, preserves_nullability=True))
    assert snapshot.schema.names == ["a"]
    assert snapshot.schema.metadata == {"owner": "me"}
    assert [[file.path for file in fragment.files] for fragment in snapshot.fragments] == [
        ["a.lance"],
        ["ab.lance"],
    ]


def test_restoring_keeps_what_must_not_be_used_twice() -> None:
    store = _created(_fragment("x", 5), stable=True)
    _commit(store, UpdateConfig(config=MapUpdate({"k": "v"})))
    _commit(store, Append((_fragment("y", 4),)))
    snapshot = _commit(store, Restore(1))
    assert (snapshot.version, snapshot.num_rows) == (4, 5)
    assert snapshot.manifest.config == {}
    assert (snapshot.manifest.max_fragment_id, snapshot.manifest.next_row_id) == (1, 9)
    with pytest.raises(VersionNotFoundError, match="No version 9"):
        _commit(store, Restore(9))


def test_a_rewrite_puts_reserved_fragments_in_place() -> None:
    store = _created(_fragment("x"), _fragment("y"), _fragment("z"))
    reserved = _commit(store, ReserveFragments(2))
    assert reserved.manifest.max_fragment_id == 4
    old = (reserved.fragment(0), reserved.fragment(1))
    snapshot = _commit(store, Rewrite((RewriteGroup(old, (_fragment("xy", 20, number=3),)),)))
    assert [fragment.id for fragment in snapshot.fragments] == [2, 3]
    assert (snapshot.num_rows, snapshot.manifest.max_fragment_id) == (30, 4)


def test_metadata_maps() -> None:
    store = _created(_fragment("x"))
    snapshot = _commit(
        store,
        UpdateConfig(
            config=MapUpdate({"a": "1", "b": "2"}),
            table_metadata=MapUpdate({"t": "1"}),
            schema_metadata=MapUpdate({"s": "1"}, replace=True),
            fields={1: MapUpdate({"f": "1"})},
        ),
    )
    assert snapshot.manifest.config == {"a": "1", "b": "2"}
    assert snapshot.manifest.table_metadata == {"t": "1"}
    assert snapshot.schema.metadata == {"s": "1"}
    assert snapshot.schema.field("b").metadata == {"f": "1"}
    assert snapshot.manifest.writer_feature_flags == 8
    snapshot = _commit(store, UpdateConfig(config=MapUpdate({"a": None, "none": None})))
    assert snapshot.manifest.config == {"b": "2"}
    with pytest.raises(ColumnNotFoundError, match="field id 7"):
        _commit(store, UpdateConfig(fields={7: MapUpdate({})}))


def test_other_operations_are_refused() -> None:
    store = _created(_fragment("x"))
    with pytest.raises(UnsupportedFeatureError, match="'clone'"):
        _commit(store, OtherOperation(OperationKind.CLONE, b""))
    assert store.list("_transactions") == [store.list("_transactions")[0]]


@pytest.mark.parametrize(
    "operation",
    [
        Delete((_fragment("x", number=3),), (1, 2), "a = 1"),
        Update((1,), (_fragment("x", number=3),), (_fragment("y"),), (0, 1)),
        Update((1,), (), (), (4,), in_place=True),
        Merge((_fragment("x"),), SCHEMA, preserves_nullability=True),
        Restore(7),
        ReserveFragments(2),
        Rewrite((RewriteGroup((_fragment("x"),), (_fragment("y", number=9),)), RewriteGroup((), ()))),
    ],
    ids=lambda operation: operation.kind.value,
)
def test_operations_survive_serialisation(operation: Operation) -> None:
    data = serialize_transaction(Transaction(3, "u", operation))
    assert parse_transaction(data).operation == operation


def test_versions_of_rows_survive_serialisation() -> None:
    for versions in ([], [5], [1, 1, 7, 7, 7, 2]):
        expected = np.array(versions, dtype=np.uint64)
        assert decode_versions(encode_versions(expected), len(versions)).tolist() == versions


# ---- rebasing --------------------------------------------------------------------------------------------


def _delete(store: MemoryStore, read: Snapshot, number: int, *offsets: int, **options: Any) -> Snapshot:
    updated, taken = _without(read, number, *offsets)
    return commit(store, Delete((updated,)), read_version=read.version, taken=taken, **options)


def test_deletions_of_different_rows_are_merged() -> None:
    store = _created(_fragment("x"), _fragment("y"))
    read = open_snapshot(store)
    _delete(store, read, 0, 1, 2)
    merged = _delete(store, read, 0, 5)
    assert merged.deleted_rows(merged.fragment(0)).tolist() == [1, 2, 5]  # type: ignore[union-attr]
    deletion = merged.fragment(0).deletion_file
    assert deletion is not None
    assert (deletion.read_version, deletion.num_deleted_rows) == (2, 3)
    assert _transaction(store, merged).read_version == 2
    # The transaction file of the first try is gone.
    assert len(store.list("_transactions")) == 3


def _transaction(store: MemoryStore, snapshot: Snapshot) -> Transaction:
    return parse_transaction(store.read(f"_transactions/{snapshot.manifest.transaction_file}"))


def test_deletions_that_leave_nothing_together_remove_the_fragment() -> None:
    store = _created(_fragment("x", 3), _fragment("y", 3))
    read = open_snapshot(store)
    _delete(store, read, 0, 0, 1)
    merged = _delete(store, read, 0, 2)
    assert [fragment.id for fragment in merged.fragments] == [1]
    assert _transaction(store, merged).operation == Delete((), (0,))


def test_deletions_of_the_same_row_conflict() -> None:
    store = _created(_fragment("x"))
    read = open_snapshot(store)
    _delete(store, read, 0, 1, 2)
    before = store.list("_transactions")
    with pytest.raises(CommitConflictError, match="same rows") as caught:
        _delete(store, read, 0, 2, 3)
    assert caught.value.place["version"] == 2
    assert caught.value.place["operation"] == "delete"
    assert store.list("_transactions") == before


def test_a_delete_after_the_fragment_is_gone_conflicts() -> None:
    store = _created(_fragment("x"))
    read = open_snapshot(store)
    _commit(store, Delete((), (0,)))
    with pytest.raises(CommitConflictError, match="removed the fragment"):
        _delete(store, read, 0, 2, 3)


def test_a_delete_without_knowledge_of_its_rows_conflicts() -> None:
    store = _created(_fragment("x"))
    read = open_snapshot(store)
    _delete(store, read, 0, 1)
    updated, _ = _without(read, 0, 2)
    with pytest.raises(CommitConflictError, match="'delete' based on version 1 conflicts with 'delete'"):
        commit(store, Delete((updated,)), read_version=1)


def test_a_delete_keeps_to_the_files_of_a_concurrent_projection() -> None:
    both = Fragment(0, (_file("a", (0,)), _file("b", (1,))), 10)
    store = _created(both)
    read = open_snapshot(store)
    _commit(store, Project(Schema(SCHEMA.fields[:1]), preserves_nullability=True))
    snapshot = _delete(store, read, 0, 2)
    assert [file.path for file in snapshot.fragments[0].files] == ["a.lance"]
    assert snapshot.num_rows == 9


def test_nothing_follows_an_overwrite() -> None:
    store = _created(_fragment("x"))
    read = open_snapshot(store)
    _commit(store, Overwrite((_fragment("y"),), SCHEMA))
    with pytest.raises(IncompatibleChangeError, match="'overwrite', which another writer"):
        _delete(store, read, 0, 2)
