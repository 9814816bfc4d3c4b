"""What a dataset consists of, as Arrow tables."""

from __future__ import annotations

import dataclasses
import datetime
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import ColumnNotFoundError, DatasetNotFoundError
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.inspection import history, indices, layout, storage
from lance_engine.io import MemoryStore
from lance_engine.schema_tree import Schema
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot
from lance_engine.write.dataset import write_dataset

TABLE = pa.table(
    {
        "number": pa.array(range(1000), pa.int64()),
        "text": [f"text number {value}" for value in range(1000)],
        "pair": pa.array(
            [{"x": 1, "tags": ["a", "b"]}] * 1000, pa.struct({"x": pa.int32(), "tags": pa.list_(pa.string())})
        ),
    }
)


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    uri = str(tmp_path / "t.lance")
    write_dataset(TABLE, uri, max_rows_per_file=400)
    write_dataset(TABLE.slice(0, 10), uri, mode="append")
    return open_snapshot(uri)


def test_versions_tell_what_changed(snapshot: Snapshot) -> None:
    commit(snapshot.store, Append(()), read_version=2, properties={"__lance_commit_message": "nothing new"})
    versions = history.versions(snapshot.uri)
    assert versions["version"].to_pylist() == [1, 2, 3]
    assert versions["operation"].to_pylist() == ["overwrite", "append", "append"]
    assert versions["rows"].to_pylist() == [1000, 1010, 1010]
    assert versions["fragments"].to_pylist() == [3, 4, 4]
    assert versions["message"].to_pylist() == [None, None, "nothing new"]
    assert versions["writer"][0].as_py().startswith("lance-sql ")
    age = datetime.datetime.now(datetime.UTC) - versions["committed_at"][2].as_py()
    assert datetime.timedelta(0) <= age < datetime.timedelta(minutes=5)
    sizes = [
        snapshot.store.size(path) for path in snapshot.store.list("_versions") if path.endswith(".manifest")
    ]
    assert versions["manifest_bytes"].to_pylist() == sizes[::-1]


def test_versions_of_nothing_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError):
        history.versions(tmp_path)


def test_versions_with_lost_deletion_files_are_still_listed() -> None:
    from lance_engine.format.manifest import DeletionFile, DeletionKind, Fragment, serialize_manifest_file
    from lance_engine.io.manifest_names import NamingScheme

    store = MemoryStore()
    manifest = commit(store, Overwrite((), Schema(())), read_version=0).manifest
    lost = Fragment(0, (), 5, DeletionFile(DeletionKind.ARROW, 1, 1, None))
    damaged = dataclasses.replace(manifest, version=2, fragments=(lost,))
    store.put(NamingScheme.V2.path(2), serialize_manifest_file(damaged))
    versions = history.versions(store)
    assert versions["rows"].to_pylist() == [0, None]
    assert versions["operation"].to_pylist() == ["overwrite", None]


def test_fragments_and_files_have_sizes(snapshot: Snapshot) -> None:
    fragments = layout.fragments(snapshot)
    assert fragments["fragment_id"].to_pylist() == [0, 1, 2, 3]
    assert fragments["rows"].to_pylist() == fragments["physical_rows"].to_pylist() == [400, 400, 200, 10]
    assert fragments["deleted_rows"].to_pylist() == [0] * 4
    assert fragments["deletion_file"].to_pylist() == [None] * 4
    files = layout.files(snapshot)
    assert files["bytes"].to_pylist() == [snapshot.store.size(path) for path in files["path"].to_pylist()]
    assert fragments["bytes"].to_pylist() == files["bytes"].to_pylist()
    assert set(files["version"].to_pylist()) == {"2.1"}
    assert files["columns"].to_pylist() == [["number", "text", "pair.x", "pair.tags.item"]] * 4


def test_sizes_that_are_not_recorded_are_looked_up(snapshot: Snapshot) -> None:
    unsized = tuple(
        dataclasses.replace(
            part, files=tuple(dataclasses.replace(file, file_size=None) for file in part.files)
        )
        for part in snapshot.fragments
    )
    other = Snapshot(snapshot.store, dataclasses.replace(snapshot.manifest, fragments=unsized))
    assert layout.files(other) == layout.files(snapshot)


def test_columns_sum_up_their_pages(snapshot: Snapshot) -> None:
    columns, pages = storage.columns(snapshot), storage.pages(snapshot)
    assert columns["column"].to_pylist() == ["number", "text", "pair.x", "pair.tags.item"]
    assert columns["type"].to_pylist() == ["int64", "string", "int32", "string"]
    assert columns["fragments"].to_pylist() == [4] * 4
    for column in columns.to_pylist():
        own = [page for page in pages.to_pylist() if page["column"] == column["column"]]
        assert column["pages"] == len(own)
        assert column["bytes"] >= sum(page["bytes"] for page in own)
        assert set(column["encodings"]) == {page["encoding"] for page in own}
        assert sum(page["rows"] for page in own) == 1010
    assert all("(" in page for page in pages["encoding"].to_pylist())


def test_pages_of_one_column_and_what_is_below(snapshot: Snapshot) -> None:
    assert set(storage.pages(snapshot, "pair")["column"].to_pylist()) == {"pair.x", "pair.tags.item"}
    pages = storage.pages(snapshot, "number")
    assert set(pages["column"].to_pylist()) == {"number"}
    assert [page["first_row"] for page in pages.to_pylist() if page["page"] == 0] == [0] * 4
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'number'"):
        storage.pages(snapshot, "nuber")


def test_a_dataset_offers_its_inspections(snapshot: Snapshot) -> None:
    inspector = DatasetVersion(snapshot).inspect
    assert inspector.versions() == history.versions(snapshot.uri)
    assert inspector.fragments() == layout.fragments(snapshot)
    assert inspector.files() == layout.files(snapshot)
    assert inspector.columns() == storage.columns(snapshot)
    assert inspector.pages() == storage.pages(snapshot)
    assert inspector.pages("text") == storage.pages(snapshot, "text")
    assert inspector.indices() == indices.indices(snapshot)


def test_empty_datasets_have_empty_tables() -> None:
    schema = Schema.from_arrow(TABLE.schema)
    empty = commit(MemoryStore(), Overwrite((), schema), read_version=0)
    assert layout.fragments(empty).num_rows == layout.files(empty).num_rows == 0
    assert storage.pages(empty).num_rows == 0
    assert storage.columns(empty)["pages"].to_pylist() == [0] * 4
