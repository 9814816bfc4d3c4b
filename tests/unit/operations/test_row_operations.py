"""Deleting, updating and restoring rows; metadata and tags."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    InvalidFilterError,
    RowNotFoundError,
    SchemaMismatchError,
    StorageError,
    TagExistsError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lance_engine.format.fragment import DeletionKind
from lance_engine.format.operations import Overwrite
from lance_engine.io import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.write.dataset import write_dataset
from lance_engine.write.fragments import write_fragments
from lance_engine.write.options import WriteOptions
from memory_tables import nothing_left_behind

ROWS = 40


def table(rows: int = ROWS) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "x": pa.array([None if i % 9 == 4 else i / 2 for i in range(rows)], pa.float64()),
            "s": [f"s{i % 5}" for i in range(rows)],
            "p": [{"l": i, "r": None} for i in range(rows)],
        }
    )


def create(data: pa.Table | None = None, *, stable: bool = False, fragment_rows: int = 15) -> DatasetVersion:
    data = table() if data is None else data
    store = MemoryStore()
    schema = Schema.from_arrow(data.schema)
    options = WriteOptions(max_rows_per_file=fragment_rows)
    fragments = write_fragments(store, schema, data.to_batches(), options)
    created = CreateOptions(stable_row_ids=stable)
    return DatasetVersion(commit(store, Overwrite(tuple(fragments), schema), read_version=0, options=created))


def ids(dataset: DatasetVersion) -> list[int]:
    found: list[int] = dataset.scan(["id"]).to_table()["id"].to_pylist()
    return found


def test_deleting_by_filter() -> None:
    dataset = create()
    after = dataset.delete("x > 10 OR s = 's1'")
    kept = table().filter((pc.field("x") > 10) | (pc.field("s") == "s1"))
    assert sorted(ids(after) + kept["id"].to_pylist()) == list(range(ROWS))
    assert (after.version, dataset.version) == (2, 1)
    assert dataset.count_rows() == ROWS
    again = after.delete(pc.field("id") == 0)
    assert ids(again) == ids(after)[1:]


def test_deleting_reads_the_columns_of_the_filter_only() -> None:
    wide = table(2000).append_column("wide", pa.array(["y" * 1000] * 2000))
    dataset = create(wide, fragment_rows=3000)
    store = dataset.snapshot.store
    assert isinstance(store, MemoryStore)
    store.reset_counters()
    dataset.delete("id < 10")
    assert store.bytes_read < 100_000


def test_deleting_by_row_id() -> None:
    for stable in (False, True):
        dataset = create(stable=stable)
        row_ids = dataset.scan(["_rowid"]).to_table()["_rowid"].to_numpy()
        after = dataset.delete(row_ids=row_ids[[3, 20, 3, 39]])
        assert set(range(ROWS)) - set(ids(after)) == {3, 20, 39}
        with pytest.raises(RowNotFoundError):
            after.delete(row_ids=row_ids[[3]])


def test_the_kind_of_a_deletion_file_follows_its_size() -> None:
    dataset = create(pa.table({"id": range(12_000)}), fragment_rows=20_000)
    few = dataset.delete("id < 4999")
    many = few.delete("id = 5000")
    kinds = [after.snapshot.fragments[0].deletion_file.kind for after in (few, many)]  # type: ignore[union-attr]
    assert kinds == [DeletionKind.ARROW, DeletionKind.BITMAP]
    assert many.count_rows() == 7000


def test_fragments_without_rows_disappear() -> None:
    dataset = create()
    after = dataset.delete("id < 15").delete("id >= 20 AND id < 30").delete("id < 20")
    assert [fragment.id for fragment in after.snapshot.fragments] == [2]
    empty = after.truncate()
    assert (empty.count_rows(), len(empty.snapshot.fragments)) == (0, 0)
    assert empty.schema == dataset.schema
    assert empty.delete("true").version == empty.version + 1


def test_delete_needs_one_selection() -> None:
    dataset = create()
    with pytest.raises(ValueError, match="filter or row ids"):
        dataset.delete()
    with pytest.raises(ValueError, match="filter or row ids"):
        dataset.delete("id = 1", row_ids=[1])
    with pytest.raises(ColumnNotFoundError):
        dataset.delete("nope = 1")


@pytest.mark.parametrize("stable", [False, True])
def test_updating(stable: bool) -> None:
    dataset = create(stable=stable)
    after = dataset.update({"x": "id * 2 + 1", "s": "upper(s)"}, "id BETWEEN 10 AND 19")
    expected = {
        i: {**row, "x": 2.0 * i + 1, "s": row["s"].upper()} if 10 <= i <= 19 else row
        for i, row in enumerate(table().to_pylist())
    }
    found = {row["id"]: row for row in after.scan().to_table().to_pylist()}
    assert found == expected
    assert after.schema == dataset.schema
    before, now = (d.scan(["id", "_rowid"]).to_table().to_pylist() for d in (dataset, after))
    same = {row["id"]: row["_rowid"] for row in before} == {row["id"]: row["_rowid"] for row in now}
    assert same is stable


def test_row_versions_after_an_update() -> None:
    dataset = create(stable=True).update({"x": "0"}, "id < 3").update({"x": "1"}, "id = 1 OR id = 39")
    snapshot = dataset.snapshot
    last = snapshot.fragments[-1]
    assert snapshot.row_ids(last).tolist() == [39, 1]
    assert snapshot.created_at_versions(last).tolist() == [1, 1]
    assert snapshot.last_updated_at_versions(last).tolist() == [3, 3]


def test_values_are_computed_from_the_old_row() -> None:
    after = create(pa.table({"id": [1, 2], "other": [10, 20]})).update({"id": "other", "other": "id"})
    assert after.scan().to_table().to_pylist() == [{"id": 10, "other": 1}, {"id": 20, "other": 2}]


def test_updating_with_a_function() -> None:
    def swapped(batch: pa.RecordBatch) -> pa.Array:
        return pc.utf8_reverse(batch["s"])

    after = create().update({"s": swapped}, "id = 7")
    assert (
        after.take(after.scan(["_rowid"], "id = 7").to_table()["_rowid"].to_numpy())["s"][0].as_py() == "2s"
    )
    with pytest.raises(SchemaMismatchError, match="2 values for 1 rows"):
        create().update({"s": lambda _: pa.array(["a", "b"])}, "id = 7")
    with pytest.raises(TypeError, match="returned list"):
        create().update({"s": lambda _: ["a"]}, "id = 7")  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"nope": "1"}, ColumnNotFoundError, "nope"),
        ({"x": "nope"}, ColumnNotFoundError, "nope"),
        ({"p.l": "1"}, UnsupportedFeatureError, "whole struct"),
        ({"x": "CASE WHEN id = 1 THEN 1 END"}, InvalidFilterError, "column: x"),
        ({"x": "'text'"}, InvalidFilterError, "to double"),
        ({"x": "1 / (id - id) + CAST('a' AS INT)"}, InvalidFilterError, "'a'"),
        ({"x": 1}, TypeError, "SQL text"),
        ({}, ValueError, "at least one"),
    ],
)
def test_updates_that_are_refused(values: Any, error: type[Exception], message: str) -> None:
    dataset = create()
    before = dataset.snapshot.store.list("")
    with pytest.raises(error, match=message):
        dataset.update(values)
    assert dataset.snapshot.store.list("") == before


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("single", "1e40"),
        ("single", "wide * -1"),
        ("single", "'1e40'"),
        ("half", "id * 70000"),
        ("items", "[1.0, 1e40]"),
        ("single", lambda batch: batch["wide"]),
        ("items", lambda batch: pa.array([[1e40]], pa.list_(pa.float64()))),
        ("byte", "id + 127"),
    ],
)
def test_a_number_that_does_not_fit_is_an_error(column: str, value: Any) -> None:
    columns = {
        "id": pa.array([1]),
        "wide": pa.array([1e40]),
        "single": pa.array([1.0], pa.float32()),
        "half": pa.array([1.0], pa.float32()).cast(pa.float16()),
        "items": pa.array([[1.0]], pa.list_(pa.float32())),
        "byte": pa.array([1], pa.int8()),
    }
    dataset = create(pa.table(columns))
    with pytest.raises(InvalidFilterError, match=f"range.*column: {column}"):
        dataset.update({column: value})
    infinite = dataset.update({"single": "CAST('-inf' AS DOUBLE)", "items": "[CAST('inf' AS DOUBLE)]"})
    assert infinite.scan(["single", "items"]).to_table().to_pylist() == [
        {"single": float("-inf"), "items": [float("inf")]}
    ]


def test_nulls_where_the_schema_forbids_them_are_refused() -> None:
    data = pa.table({"id": [1]}, schema=pa.schema([pa.field("id", pa.int64(), nullable=False)]))
    dataset = create(data)
    with pytest.raises(SchemaMismatchError, match="id"):
        dataset.update({"id": "NULL"})
    assert len(dataset.snapshot.store.list("data")) == 1


def test_restoring() -> None:
    dataset = create(stable=True)
    after = dataset.delete("id > 3").update({"x": "1"})
    restored = after.restore(1)
    assert (restored.version, ids(restored)) == (4, list(range(ROWS)))
    assert restored.delete("id > 0").restore(3).count_rows() == 4
    assert dataset.restore().version == 7
    with pytest.raises(VersionNotFoundError, match="Version 99 not found"):
        dataset.restore(99)


def test_metadata() -> None:
    dataset = create().update_config({"a": "1", "b": "2"}).update_config({"a": None})
    assert dataset.snapshot.manifest.config == {"b": "2"}
    dataset = dataset.update_metadata({"m": "1"}).update_metadata({"n": "1"}, replace=True)
    assert dataset.snapshot.manifest.table_metadata == {"n": "1"}
    dataset = dataset.update_schema_metadata({"s": "1"}).update_schema_metadata({"c": "1"}, column="p.l")
    assert dataset.schema.metadata == {b"s": b"1"}
    assert dataset.schema.field("p").type.field("l").metadata == {b"c": b"1"}
    with pytest.raises(ColumnNotFoundError):
        dataset.update_schema_metadata({"c": "1"}, column="nope")


def test_tags() -> None:
    dataset = create().delete("id = 0")
    store = dataset.snapshot.store
    tag = dataset.tags.create("v.1-ä", 1)
    dataset.tags.create("prod")
    assert [(tag.name, tag.version) for tag in dataset.tags.list()] == [("prod", 2), ("v.1-ä", 1)]
    assert DatasetVersion.open(store, tag="v.1-ä").version == 1  # type: ignore[arg-type]
    with pytest.raises(TagExistsError, match="'prod' already exists"):
        dataset.tags.create("prod", 1)
    moved = dataset.tags.update("v.1-ä", 2)
    assert (moved.version, moved.created_at) == (2, tag.created_at)
    assert repr(dataset.tags) == "Tags({'prod': 2, 'v.1-ä': 2})"
    dataset.tags.delete("prod")
    for missing in (dataset.tags.get, dataset.tags.delete, dataset.tags.update):
        with pytest.raises(VersionNotFoundError, match="Available tags: v"):
            missing("prod")
    with pytest.raises(VersionNotFoundError, match="No version 9"):
        dataset.tags.create("x", 9)
    for name in ("", ".a", "a.", "a..b", "a/b", "a.lock", "a b"):
        with pytest.raises(ValueError, match="not a valid tag name"):
            dataset.tags.create(name)


def test_opening_as_of_a_time() -> None:
    dataset = create()
    after = dataset.delete("id = 0")
    times = [d.snapshot.manifest.committed_at for d in (dataset, after)]
    store: Any = dataset.snapshot.store
    assert DatasetVersion.open(store, as_of=times[0]).version == 1
    assert DatasetVersion.open(store, as_of=datetime.datetime.now() + datetime.timedelta(1)).version == 2
    with pytest.raises(VersionNotFoundError, match="No version existed"):
        DatasetVersion.open(store, as_of=times[0] - datetime.timedelta(seconds=1))
    with pytest.raises(ValueError, match="only one"):
        DatasetVersion.open(store, 1, tag="x")


# ---- other writers ---------------------------------------------------------------------------------------


def test_an_old_dataset_deletes_after_others_did() -> None:
    old = create()
    old.delete("id = 1")
    assert set(range(ROWS)) - set(ids(old.delete("id = 2"))) == {1, 2}
    # The same rows: redone on the latest version.
    assert set(range(ROWS)) - set(ids(old.delete("id < 3"))) == {0, 1, 2}
    old.update({"x": "5"}, "id = 30")
    after = old.update({"x": "x + 1"}, "id = 30")
    assert after.scan(["x"], "id = 30").to_table()["x"].to_pylist() == [6]


def test_nothing_is_left_behind_when_others_always_win(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = create()
    with nothing_left_behind(dataset, monkeypatch):
        for operation in (lambda: dataset.delete("id = 1"), lambda: dataset.update({"x": "1"})):
            with pytest.raises(CommitConflictError, match="concurrent commits"):
                operation()


def test_replaced_deletion_files_are_removed() -> None:
    old = create()
    old.delete("id = 1")
    old.delete("id = 2")
    old.delete("id = 3")
    assert len(old.snapshot.store.list("_deletions")) == 3


def test_a_failed_delete_leaves_no_deletion_files_on_a_store() -> None:
    class Full(MemoryStore):
        is_full = False

        def put(self, path: str, data: bytes) -> None:
            if self.is_full and path.startswith("_deletions/5-"):
                raise StorageError("the store is full", path=path)
            super().put(path, data)

    store = Full("full")
    rows = pa.table({"a": range(200)})
    dataset = DatasetVersion(write_dataset(rows, store, max_rows_per_file=10))
    store.is_full = True
    with pytest.raises(StorageError, match="the store is full"):
        dataset.delete("a % 10 = 3 OR a < 20")
    assert store.list("_deletions") == []
    store.is_full = False
    changed = dataset.delete("a % 10 = 3 OR a < 20")
    assert len(store.list("_deletions")) == 18
    assert changed.scan().to_table()["a"].to_pylist() == [a for a in range(20, 200) if a % 10 != 3]
