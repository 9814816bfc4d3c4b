"""Inspecting datasets that pylance wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.inspection import history, indices, layout, storage
from lance_engine.table.versions import open_snapshot

TABLE = pa.table({"a": range(100), "s": [{"x": 1, "l": ["b"]}] * 100, "n": pa.nulls(100, pa.int32())})


@pytest.mark.parametrize(
    ("version", "columns"),
    [
        ("2.0", ["a", "s", "s.x", "s.l", "s.l.item", "n", "c"]),
        ("2.1", ["a", "s.x", "s.l.item", "n", "c"]),
        ("2.2", ["a", "s.x", "s.l.item", "n", "c"]),
    ],
)
def test_columns_of_several_files_and_versions(tmp_path: Path, version: Any, columns: list[str]) -> None:
    path = str(tmp_path / "t.lance")
    dataset: Any = lance.write_dataset(TABLE, path, max_rows_per_file=60, data_storage_version=version)
    dataset.delete("a < 5")
    dataset.add_columns({"c": "a + 1"})
    snapshot = open_snapshot(path)
    described = storage.columns(snapshot)
    assert described["column"].to_pylist() == columns
    assert described["fragments"].to_pylist() == [2] * len(columns)
    assert layout.fragments(snapshot)["deleted_rows"].to_pylist() == [5, 0]
    assert layout.files(snapshot)["columns"].to_pylist() == [columns[:-1], ["c"]] * 2
    assert history.versions(path)["operation"].to_pylist() == ["overwrite", "delete", "merge"]
    assert history.versions(path)["features"].to_pylist() == [[], ["deletion files"], ["deletion files"]]
    if version == "2.1":
        assert storage.pages(snapshot, "n")["encoding"].to_pylist() == ["constant(null)"] * 2


def test_columns_added_without_data_have_no_pages(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset: Any = lance.write_dataset(TABLE, path, data_storage_version="2.1")
    dataset.add_columns(pa.schema([pa.field("later", pa.int8())]))
    (later,) = (row for row in storage.columns(open_snapshot(path)).to_pylist() if row["column"] == "later")
    assert (later["fragments"], later["pages"], later["bytes"], later["encodings"]) == (0, 0, 0, [])


def test_indices_and_what_they_cover(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset: Any = lance.write_dataset(TABLE, path, max_rows_per_file=60, data_storage_version="2.1")
    assert indices.indices(open_snapshot(path)).num_rows == 0
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("a", "ZONEMAP", name="zones")
    lance.write_dataset(TABLE, path, mode="append", data_storage_version="2.1")
    found = indices.indices(open_snapshot(path)).to_pylist()
    assert [(row["name"], row["kind"], row["columns"]) for row in found] == [
        ("a_idx", "BTree", ["a"]),
        ("zones", "ZoneMap", ["a"]),
    ]
    for row in found:
        assert (row["fragments"], row["uncovered_fragments"]) == (2, 1)
        folder = tmp_path / "t.lance" / "_indices" / row["uuid"]
        assert row["bytes"] == sum(file.stat().st_size for file in folder.iterdir())
