"""Structs of which some fragments lack fields: these read as null, and every operation goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    SchemaMismatchError,
    UnsupportedTypeError,
)

import lance_sql

VERSIONS = ["2.0", "2.1", "2.2"]
INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string()), ("i", INNER)])
SCHEMA = pa.schema([("id", pa.int64()), ("s", STRUCT), ("l", pa.list_(pa.struct(list(STRUCT)[:2])))])


def rows(first: int) -> list[dict[str, Any]]:
    return [
        {
            "id": first + number,
            "s": {"a": number, "b": f"b{number}", "i": {"x": number, "y": None}},
            "l": [{"a": item, "b": "item"} for item in range(number % 3)],
        }
        for number in range(10)
    ]


def appended(uri: str, schema: pa.Schema, first: int) -> None:
    """Rows, of which the fields of `schema` are written."""
    table = pa.Table.from_pylist(rows(first), schema=schema)
    lance.write_dataset(table, uri, mode="append")


@pytest.fixture(params=VERSIONS)
def dataset(request: pytest.FixtureRequest, tmp_path: Path) -> lance_sql.Dataset:
    """Fragments with all fields, with fewer at each level, and with fewer in another order."""
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(pa.Table.from_pylist(rows(0), schema=SCHEMA), uri, data_storage_version=request.param)
    id_field = pa.field("id", pa.int64())
    appended(uri, pa.schema([id_field, ("s", pa.struct([("b", pa.string())]))]), 10)
    appended(uri, pa.schema([("l", pa.list_(pa.struct([("b", pa.string())]))), id_field]), 20)
    only_x = pa.struct([("x", pa.int64())])
    appended(uri, pa.schema([id_field, ("s", pa.struct([("i", only_x), ("a", pa.int64())]))]), 30)
    if request.param == "2.2":
        added = pa.schema([("s", pa.struct([("c", pa.int64())]))])
        lance.dataset(uri).add_columns(added)
        appended(uri, pa.schema([id_field, ("s", pa.struct([("c", pa.int64())]))]), 40)
    lance.dataset(uri).delete("id % 10 = 3")
    return lance_sql.open(uri)


def theirs(dataset: lance_sql.Dataset, **options: Any) -> pa.Table:
    return lance.dataset(dataset.uri).to_table(**options)


def test_scans_and_takes(dataset: lance_sql.Dataset) -> None:
    expected = theirs(dataset, with_row_id=True)
    assert dataset.scan(columns=expected.schema.names).to_table().to_pylist() == expected.to_pylist()
    ids = expected["_rowid"].to_pylist()[::-3]
    taken = expected.take(pa.array(range(len(expected)))[::-3]).drop_columns("_rowid")
    assert dataset.take(ids).equals(taken.combine_chunks())
    assert dataset.verify(values=True).num_rows == 0


@pytest.mark.parametrize(
    "where",
    [
        "s.a IS NULL",
        "s.a >= 4",
        "s.b = 'b5'",
        "s.i.x IS NOT NULL AND s.i.y IS NULL",
        "s.i.x < 3 OR s.b IS NOT NULL",
        "s IS NULL",
        "s.i IS NULL",
        "l IS NULL",
    ],
)
def test_filters(dataset: lance_sql.Dataset, where: str) -> None:
    expected = theirs(dataset, filter=where)
    assert expected.num_rows > 0
    assert dataset.scan(filter=where).to_table().to_pylist() == expected.to_pylist()
    assert dataset.scan(filter=where).count() == expected.num_rows
    assert dataset.scan(columns=["id"], filter=where, zone_maps=False).to_table()["id"] == expected["id"]


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_sql(dataset: lance_sql.Dataset, engine: str) -> None:
    table = theirs(dataset)
    expected = [row["id"] for row in table.to_pylist() if row["s"] is not None and row["s"]["b"] is None]
    found = lance_sql.sql(
        f"SELECT id FROM '{dataset.uri}' WHERE s IS NOT NULL AND s['b'] IS NULL ORDER BY id", engine=engine
    )
    assert found.arrow()["id"].to_pylist() == expected


def test_compaction_writes_all_fields(dataset: lance_sql.Dataset) -> None:
    expected = theirs(dataset)
    if dataset.snapshot.manifest.storage_version == "2.0":
        with pytest.raises(UnsupportedTypeError, match="cannot hold null structs"):
            dataset.compact()  # which would lose the nulls
        return
    compacted = dataset.compact()
    assert len(compacted.snapshot.fragments) == 1
    assert compacted.scan().to_table().to_pylist() == expected.to_pylist()
    assert theirs(compacted).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_of_structs_without_nulls(tmp_path: Path, version: str) -> None:
    uri = str(tmp_path / "t.lance")
    table = pa.table({"s": [{"a": 1, "b": "x"}], "l": [[{"a": 1, "b": "x"}]]})
    lance.write_dataset(table, uri, data_storage_version=version)
    fewer = pa.table({"l": [[{"b": "y"}, {"b": "z"}]], "s": [{"b": "y"}]})
    lance.write_dataset(fewer, uri, mode="append")
    compacted = lance_sql.open(uri).compact()
    assert len(compacted.snapshot.fragments) == 1
    assert theirs(compacted).to_pylist() == [
        {"s": {"a": 1, "b": "x"}, "l": [{"a": 1, "b": "x"}]},
        {"s": {"a": None, "b": "y"}, "l": [{"a": None, "b": "y"}, {"a": None, "b": "z"}]},
    ]


def test_changes(dataset: lance_sql.Dataset) -> None:
    moved = "s.i IS NOT NULL AND s.b IS NULL AND l IS NULL"
    if dataset.snapshot.manifest.storage_version == "2.0":
        moved = "id < 5"  # files of this version hold no null structs
    changed = dataset.update({"id": "id + 1000"}, where=moved).delete("s.i.x = 5")
    expected = theirs(changed, with_row_id=True)
    assert changed.scan(columns=expected.schema.names).to_table().to_pylist() == expected.to_pylist()
    indexed = changed.create_index("s.b")
    assert indexed.scan(filter="s.b = 'b6'").to_table().equals(theirs(changed, filter="s.b = 'b6'"))
    assert indexed.scan(filter="s.b IS NULL").count() == theirs(changed, filter="s.b IS NULL").num_rows


@pytest.mark.parametrize(
    "columns",
    [["s.b"], ["s.a", "id", "s.i.y"], ["s.i"], ["id", "s.i.x", "s"], ["`s`.`b`"]],
)
def test_subfields_as_columns(dataset: lance_sql.Dataset, columns: list[str]) -> None:
    expected = theirs(dataset, columns=columns)
    assert dataset.scan(columns=columns).to_table().equals(expected)
    where = "s.a > 2 OR s.b IS NULL"
    assert (
        dataset.scan(columns=columns, filter=where).to_table().to_pylist()
        == theirs(dataset, columns=columns, filter=where).to_pylist()
    )
    ids = theirs(dataset, columns=["id"], with_row_id=True)["_rowid"].to_pylist()[::4]
    taken = dataset.take(ids, columns=columns)
    assert taken.equals(lance.dataset(dataset.uri)._take_rows(ids, columns=columns))


def test_paths_that_are_no_columns(dataset: lance_sql.Dataset) -> None:
    with pytest.raises(SchemaMismatchError, match="list items"):
        dataset.scan(columns=["l.item.a"])
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 's\.z' not found"):
        dataset.scan(columns=["s.z"])
    with pytest.raises(ColumnNotFoundError, match=r"[Cc]olumn 's\.z' not found"):
        dataset.take([0], columns=["s.z"])
    taken = dataset.take([1, 2], columns=["l.item.b"])
    assert taken.to_pylist() == [{"l": [{"b": "item"}]}, {"l": [{"b": "item"}] * 2}]


def test_the_least_and_the_greatest(dataset: lance_sql.Dataset) -> None:
    assert [bound.as_py() for bound in dataset.min_max("s.i.x")] == [0, 9]


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_cast_within_lists_of_structs(tmp_path: Path, version: str) -> None:
    """The new file has nulls in the places of deleted rows, where the old one has lists."""
    uri = str(tmp_path / "t.lance")
    kind = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))
    lists = [[{"a": 1, "b": "x"}, None], None, [], [{"a": 2, "b": None}] * 3, [None], [{"a": 3, "b": "y"}]]
    table = pa.table({"id": range(6), "l": pa.array(lists, kind), "s": [{"l": held} for held in lists]})
    lance.write_dataset(table, uri, data_storage_version=version)
    lance.dataset(uri).delete("id = 3")
    lance.dataset(uri).alter_columns({"path": "l.item.a", "data_type": pa.int64()})
    lance.dataset(uri).alter_columns({"path": "s.l.item.b", "data_type": pa.large_string()})
    expected = lance.dataset(uri).to_table()
    ours = lance_sql.open(uri)
    assert ours.scan().to_table().equals(expected)
    assert ours.take([5, 0], columns=["l"])["l"].to_pylist() == [lists[5], lists[0]]
    assert ours.scan(filter="array_length(l) = 2").count() == 1
    assert ours.compact(deleted_share=0.0).scan().to_table().equals(expected)


def test_fields_of_other_files_fill_null_structs(tmp_path: Path) -> None:
    """A struct is null where it is in every file; fields of files in which it is null are null."""
    uri = str(tmp_path / "t.lance")
    table = pa.table({"s": pa.array([{"a": 1}, None, None], pa.struct([("a", pa.int64())]))})
    lance.write_dataset(table, uri, data_storage_version="2.2")
    added = pa.table({"s": pa.array([None, {"b": 5}, None], pa.struct([("b", pa.int64())]))})
    lance.dataset(uri).add_columns(added.to_reader())
    expected = lance.dataset(uri).to_table()
    assert expected["s"].to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": 5}, None]
    ours = lance_sql.open(uri)
    assert ours.scan().to_table().equals(expected)
    assert ours.scan(filter="s IS NULL").count() == 1
    assert ours.scan(columns=["s.b"]).to_table()["s.b"].to_pylist() == [None, 5, None]


def test_lists_of_unequal_lengths_are_told(tmp_path: Path) -> None:
    """Files that contradict one another: pylance fails as well."""
    uri = str(tmp_path / "t.lance")
    kinds = [pa.list_(pa.struct([(name, pa.int64())])) for name in ("a", "b")]
    one = pa.table({"l": pa.array([[{"a": 1}], [{"a": 2}]], kinds[0])})
    lance.write_dataset(one, uri, data_storage_version="2.2")
    two = pa.table({"l": pa.array([[{"b": 1}, {"b": 3}], [{"b": 2}]], kinds[1])})
    lance.dataset(uri).add_columns(two.to_reader())
    with pytest.raises(CorruptFileError, match="List lengths differ between the files"):
        lance_sql.open(uri).scan().to_table()
