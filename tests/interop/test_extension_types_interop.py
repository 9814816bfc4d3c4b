"""Extension types keep their storage and their name, written by either side and read by the other."""

from __future__ import annotations

import pickle
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import duckdb
import lance
import lance.arrow
import lance.blob
import pyarrow as pa
import pytest
from lance_engine.errors import LanceError
from lance_engine.logical_types import with_extensions

import lance_sql

TENSORS = pa.fixed_shape_tensor(pa.float32(), [2, 2])
ARRAYS = {
    "uuid": pa.array([uuid.UUID(int=5).bytes, None], pa.uuid()),
    "bool8": pa.array([1, None], pa.bool8()),
    "tensor": pa.ExtensionArray.from_storage(TENSORS, pa.array([[1, 2, 3, 4], None], TENSORS.storage_type)),
    "bfloat16": lance.arrow.bfloat16_array([1.5, None]),
    "bfloat16 vectors": pa.FixedSizeListArray.from_arrays(
        lance.arrow.bfloat16_array([7.0, 7.0, 1.0, 2.0, 3.0, 4.0]), 2
    ).slice(1),
}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", [lance.write_dataset, lance_sql.write])
def test_both_directions(tmp_path: Path, version: str, writer: Any) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table(ARRAYS)
    writer(table, uri, data_storage_version=version)
    for read in (lance.dataset(uri).to_table(), lance_sql.open(uri).scan().to_table()):
        assert read.schema.types == table.schema.types
        assert read.to_pylist() == table.to_pylist()
    lance_sql.write(table, uri, mode="append")
    assert lance.dataset(uri).to_table().to_pylist() == table.to_pylist() * 2


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_the_schema_shows_them(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    uuids = pa.array([uuid.UUID(int=5).bytes, None], pa.uuid())
    columns: dict[str, pa.Array] = {
        "id": pa.array([1, 2]),
        "json": pa.array(['{"a":1}', None], pa.json_()),
        "struct": pa.StructArray.from_arrays([uuids], ["u"]),
        "list": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), uuids),
    }
    columns |= {name: array for name, array in ARRAYS.items() if name != "bfloat16 vectors"}
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    fields = [pa.field(name, array.type) for name, array in columns.items()]
    table = pa.table(
        [*columns.values(), pa.array([b"a", None], pa.large_binary())], pa.schema([*fields, blob])
    )
    lance.write_dataset(table, uri, data_storage_version=version)
    dataset, theirs = lance_sql.open(uri), lance.dataset(uri)
    assert dataset.schema.equals(theirs.schema, check_metadata=True)
    # In 2.2 these are blobs of the second kind, which have a type of their own; scans give their bytes.
    expected = theirs.schema.set(len(table.column_names) - 1, blob)
    assert version == "2.2" or expected.equals(theirs.schema, check_metadata=True)
    assert dataset.scan().to_table().schema.equals(expected, check_metadata=True)
    assert dataset.storage_schema.field("uuid").type == pa.binary(16)
    assert "uuid: extension<arrow.uuid>" in repr(dataset)


@pytest.mark.parametrize("nested", [False, True])
def test_blobs_of_the_second_kind(tmp_path: Path, nested: bool) -> None:
    uri, copy = str(tmp_path / "t.lance"), str(tmp_path / "copy.lance")
    blobs: pa.Array = lance.blob.blob_array([b"a" * 10, None, b"c" * 100])
    column = pa.StructArray.from_arrays([blobs], ["inner"]) if nested else blobs
    lance.write_dataset(pa.table({"id": [1, 2, 3], "b": column}), uri, data_storage_version="2.2")
    dataset = lance_sql.open(uri)
    shown = lance.dataset(uri).schema
    assert dataset.schema.equals(shown, check_metadata=True)
    assert pickle.loads(pickle.dumps(dataset)).schema == shown
    expected = [{"inner": value} if nested else value for value in (b"a" * 10, None, b"c" * 100)]
    for rows in (dataset, dataset.to_table(), dataset.scan().to_reader()):
        copied = lance_sql.write(rows, copy, "overwrite", data_storage_version="2.2")
        assert copied.schema.equals(lance.dataset(copy).schema, check_metadata=True)
        assert copied.to_table().to_pylist() == [{"id": i + 1, "b": expected[i]} for i in range(3)]
    for engine in ("duckdb", "datafusion"):
        assert lance_sql.sql(f"SELECT b FROM '{uri}' ORDER BY id", engine).fetchall() == [
            (b,) for b in expected
        ]
    assert duckdb.sql("SELECT b FROM dataset ORDER BY id").fetchall() == [(b,) for b in expected]
    assert lance_sql.scan_polars(uri).collect()["b"].to_list() == expected


def test_blobs_where_no_package_knows_them(tmp_path: Path) -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([pa.array([b"x"], pa.large_binary())], pa.schema([field]))
    lance_sql.write(table, tmp_path / "t.lance", data_storage_version="2.2")
    text = (
        "import sys, pickle, lance_sql;"
        "schema = lance_sql.open(sys.argv[1]).schema;"
        "assert pickle.loads(pickle.dumps(schema)) == schema;"
        "print(schema, 'lance' in sys.modules)"
    )
    command = [sys.executable, "-c", text, str(tmp_path / "t.lance")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "b: extension<lance.blob.v2<BlobType>> False"


def test_what_goes_by_the_schema(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    columns = {name: ARRAYS[name] for name in ("uuid", "bool8", "tensor")}
    table = pa.table({"id": [1, 2], "json": pa.array(['{"a":1}', None], pa.json_()), **columns})
    dataset = lance_sql.write(table, uri)
    lance_sql.write(pa.Table.from_batches(table[1:].to_batches(), dataset.schema), uri, mode="append")
    at = f"'{uri}'"
    lance_sql.sql(f"UPDATE {at} SET id = 9 WHERE uuid IS NOT NULL AND id = 1")
    lance_sql.sql(f"INSERT INTO {at} (id, json) VALUES (4, '[]')")
    lance_sql.sql(f"DELETE FROM {at} WHERE id = 2")
    changed = lance_sql.open(uri)
    found = changed.scan(["id", "json"], filter="tensor IS NULL").to_table()
    assert found.to_pylist() == [{"id": 4, "json": "[]"}]
    assert changed.schema.equals(lance.dataset(uri).schema, check_metadata=True)
    assert duckdb.sql("SELECT uuid FROM changed WHERE id = 9").fetchall() == [(uuid.UUID(int=5),)]
    assert lance_sql.sql(f"SELECT count(uuid) FROM {at}", engine="datafusion").fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_uuids_are_written_as_text_and_as_values(tmp_path: Path, engine: str) -> None:
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"id": [1], "u": pa.array([uuid.UUID(int=7).bytes], pa.uuid())}), uri)
    lance_sql.sql(f"INSERT INTO '{uri}' VALUES (2, '{uuid.UUID(int=8)}'), (3, NULL)", engine)
    lance_sql.sql(f"INSERT INTO '{uri}' SELECT id + 10, u FROM '{uri}' WHERE id < 3", engine)
    lance_sql.sql(f"UPDATE '{uri}' SET u = '{uuid.UUID(int=9)}' WHERE id = 3", engine)
    rows = {row["id"]: row["u"] for row in lance.dataset(uri).to_table().to_pylist()}
    first, second, third = (uuid.UUID(int=number) for number in (7, 8, 9))
    assert rows == {1: first, 2: second, 3: third, 11: first, 12: second}
    with pytest.raises(LanceError, match="nonsense"):
        lance_sql.sql(f"INSERT INTO '{uri}' VALUES (4, 'nonsense')", engine)


def test_a_name_that_the_storage_contradicts() -> None:
    schema = pa.schema([pa.field("x", pa.int32(), metadata={"ARROW:extension:name": "arrow.uuid"})])
    assert with_extensions(schema).equals(schema, check_metadata=True)
