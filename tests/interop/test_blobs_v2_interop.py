"""Blobs of the second kind (2.2): every place where their bytes may be, read and written with pylance."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from corpus import difference
from lance import Blob, DatasetBasePath, blob_array, blob_field
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import (
    CorruptFileError,
    ExternalAccessError,
    SchemaMismatchError,
    UnsupportedTypeError,
)
from lance_engine.io.memory import MemoryStore
from lance_engine.scan.splits import ScanSplit
from lance_engine.table.versions import open_snapshot
from lance_engine.write.dataset import write_dataset

import lance_sql

MARK = {"lance-encoding:blob": "true"}
SCHEMA = pa.schema([("id", pa.int64()), pa.field("b", pa.large_binary(), metadata=MARK)])
#: inline, null, empty, in a file shared with others (twice), in a file of its own
VALUES = [b"abc", None, b"", b"x" * 70_000, b"w" * 80_000, b"y" * 5_000_000, b"z"]
TABLE = pa.table([range(len(VALUES)), VALUES], schema=SCHEMA)


def theirs(path: Path) -> str:
    lance.write_dataset(TABLE, str(path), data_storage_version="2.2")
    return str(path)


def values(uri: str) -> list[bytes | None]:
    return lance.dataset(uri).to_table(blob_handling="all_binary")["b"].to_pylist()


def test_written_by_pylance(tmp_path: Path) -> None:
    dataset = lance_sql.open(theirs(tmp_path / "t.lance"))
    kinds = [each and each["kind"] for each in lance.dataset(dataset.uri).to_table()["b"].to_pylist()]
    assert kinds == [0, None, 0, 1, 1, 2, 0]
    assert difference(dataset.scan().to_table(), TABLE) == ""
    assert dataset.schema.field("b").type == lance.dataset(dataset.uri).schema.field("b").type
    assert difference(dataset.scan(splits=[ScanSplit(0, 3, 6)]).to_table(), TABLE.slice(3, 3)) == ""
    assert dataset.take([5, 1, 5, 0])["b"].to_pylist() == [VALUES[row] for row in (5, 1, 5, 0)]
    assert dataset.scan(columns=["b"], filter="id = 4").to_table()["b"].to_pylist() == [VALUES[4]]
    assert dataset.verify().num_rows == 0
    answer = lance_sql.sql(f"SELECT sum(octet_length(b)) AS n FROM '{dataset.uri}'").arrow()
    assert answer["n"].to_pylist() == [sum(len(value or b"") for value in VALUES)]


def test_a_store_that_is_not_local(tmp_path: Path) -> None:
    uri = theirs(tmp_path / "t.lance")
    store = MemoryStore()
    for path in Path(uri).rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(uri)), path.read_bytes())
    assert difference(DatasetVersion(open_snapshot(store)).scan().to_table(), TABLE) == ""


def test_blobs_elsewhere(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "digits").write_bytes(b"0123456789")
    uri = f"file://{place}/digits"
    array = blob_array([b"abc", Blob.from_uri(uri), Blob.from_uri(uri, 5, 3), None, Blob.empty()])
    table = pa.table([array], schema=pa.schema([blob_field("b")]))
    expected = [b"abc", b"0123456789", b"567", None, b""]
    absolute = str(tmp_path / "absolute.lance")
    lance.write_dataset(table, absolute, data_storage_version="2.2", allow_external_blob_outside_bases=True)
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(absolute).scan().to_table()
    for allowed in ("all", [str(place)], {f"file://{place}/": {}}, [place]):
        opened = lance_sql.open(absolute, allow_external=allowed)
        assert opened.scan().to_table()["b"].to_pylist() == expected
    for refusing in ("none", "same-store", [f"{place}s"]):
        with pytest.raises(ExternalAccessError, match="'all'"):
            lance_sql.open(absolute, allow_external=refusing).take([1])
    based = str(tmp_path / "based.lance")
    bases = [DatasetBasePath(str(place), name="place", is_dataset_root=False)]
    lance.write_dataset(table, based, data_storage_version="2.2", initial_bases=bases)
    assert {each and each["blob_id"] for each in lance.dataset(based).to_table()["b"].to_pylist()} == {
        0,
        1,
        None,
    }
    with pytest.raises(ExternalAccessError, match="allow_external"):
        lance_sql.open(based).scan().to_table()
    with lance_sql.connect(allow_external=[str(place)]) as session:
        assert [row[0] for row in session.sql(f"SELECT b FROM '{based}'").fetchall()] == expected
    (place / "digits").unlink()
    with pytest.raises(CorruptFileError, match="file of blobs is missing") as caught:
        lance_sql.open(absolute, allow_external="all").scan().to_table()
    assert caught.value.place["column"] == "b"


def test_files_of_blobs_that_are_short_or_gone(tmp_path: Path) -> None:
    uri = theirs(tmp_path / "t.lance")
    shared, own = sorted(tmp_path.rglob("*.blob"), key=lambda path: path.stat().st_size)
    shared.write_bytes(shared.read_bytes()[:100_000])
    with pytest.raises(CorruptFileError, match="past the end"):
        lance_sql.open(uri).take([4])
    assert lance_sql.open(uri).take([3])["b"].to_pylist() == [VALUES[3]]
    own.unlink()
    with pytest.raises(CorruptFileError, match="missing"):
        lance_sql.open(uri).take([5])
    assert lance_sql.open(uri).scan(columns=["id"]).to_table().num_rows == len(VALUES)


def test_written_by_us(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    write_dataset(TABLE, uri, data_storage_version="2.2")
    assert difference(lance_sql.open(uri).scan().to_table(), TABLE) == ""
    reader = lance.dataset(uri)
    assert str(reader.schema.field("b").type).startswith("extension<lance.blob.v2")
    assert values(uri) == VALUES
    blobs = reader.take_blobs("b", indices=[0, 2, 5])
    assert [blob.read() for blob in blobs] == [VALUES[0], VALUES[2], VALUES[5]]
    assert reader.take([6, 3], columns=["id"])["id"].to_pylist() == [6, 3]


def test_both_add_and_change_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    write_dataset(TABLE, uri, data_storage_version="2.2")
    lance.write_dataset(TABLE, uri, mode="append")
    write_dataset(TABLE, uri, mode="append")
    assert values(uri) == VALUES * 3
    dataset = lance_sql.open(uri).update({"id": "id + 100"}, where="id = 3").delete("id = 0").compact()
    kept = sorted((row for row in TABLE.to_pylist() * 3 if row["id"] != 0), key=str)
    for row in kept:
        row["id"] += 100 if row["id"] == 3 else 0
    assert sorted(dataset.scan().to_table().to_pylist(), key=str) == sorted(kept, key=str)
    assert sorted(map(str, values(uri))) == sorted(str(row["b"]) for row in kept)
    dataset.cleanup(older_than=timedelta(0))
    assert sorted(map(str, values(uri))) == sorted(str(row["b"]) for row in kept)


def test_inside_a_struct(tmp_path: Path) -> None:
    kind = pa.struct([SCHEMA.field("id"), SCHEMA.field("b")])
    rows = [{"id": 1, "b": b"one"}, None, {"id": 2, "b": None}, {"id": None, "b": b"y" * 100_000}]
    table = pa.table([pa.array(rows, kind)], schema=pa.schema([pa.field("s", kind)]))
    uri = str(tmp_path / "t.lance")
    write_dataset(table, uri, data_storage_version="2.2")
    assert lance_sql.open(uri).scan().to_table()["s"].to_pylist() == rows
    assert lance.dataset(uri).to_table(blob_handling="all_binary")["s"].to_pylist() == rows


def test_data_of_their_blob_type(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table([blob_array([b"abc", None, b""])], schema=pa.schema([blob_field("b")]))
    write_dataset(table, uri, data_storage_version="2.2")
    assert values(uri) == [b"abc", None, b""]
    with pytest.raises(UnsupportedTypeError, match=r"second kind are not supported in file version 2\.1"):
        write_dataset(table, uri, "overwrite", data_storage_version="2.1")
    table = pa.table([blob_array(["file:///somewhere/else"])], schema=pa.schema([blob_field("b")]))
    with pytest.raises(SchemaMismatchError, match="external blobs"):
        write_dataset(table, uri, "append")


def test_many_large_blobs_come_in_several_batches(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    large = pa.table([range(9), [bytes(20 << 20)] * 9], schema=SCHEMA)
    write_dataset(large, uri, data_storage_version="2.2")
    batches = list(lance_sql.open(uri).scan().to_batches())
    assert sum(batch.num_rows for batch in batches) == 9
    assert max(batch.nbytes for batch in batches) <= 64 << 20


def test_blobs_can_be_added_as_a_new_column(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance_sql.write(pa.table({"x": [1, 2, 3]}), uri, data_storage_version="2.2")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = {1: b"x", 2: None, 3: b"y" * 100_000}

    def blobs(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = [values[x] for x in batch.column("x").to_pylist()]
        return pa.record_batch([pa.array(found, pa.large_binary())], schema=pa.schema([field]))

    dataset = dataset.add_columns(blobs)
    assert dataset.snapshot.schema.field("b").is_blob_v2
    assert dataset.scan().to_table()["b"].to_pylist() == list(values.values())
    theirs = lance.dataset(uri).to_table(blob_handling="all_binary")
    assert theirs["b"].to_pylist() == list(values.values())
