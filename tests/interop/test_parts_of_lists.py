"""Lists of structs of which later files replaced some fields, and structs of 2.0 without any field stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError

import lance_sql

BOTH = {"a": 1, "b": 1}


def replaced(path: Path, version: str, old: list[Any], new: dict[int, Any]) -> str:
    """A dataset of lists, of whose items a later file has other values of `b` for some rows."""
    uri = str(path / "t.lance")
    kind = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.int64())]))
    lists = pa.array(old, kind)
    table = pa.table({"id": range(len(old)), "x": [0] * len(old), "l": lists})
    lance.write_dataset(table, uri, data_storage_version=version)
    values = pa.array(list(new.values()), pa.list_(pa.struct([("b", pa.int64())])))
    merge = lance.dataset(uri).merge_insert("id").when_matched_update_all()
    merge.execute(pa.table({"id": list(new), "l": values}))
    return uri


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_lengths_at_deleted_rows(tmp_path: Path, version: str) -> None:
    uri = replaced(tmp_path, version, [[BOTH, BOTH], [BOTH], [BOTH]], {0: [{"b": 5}], 2: [{"b": 7}]})
    with pytest.raises(CorruptFileError, match="List lengths differ between the files"):
        lance_sql.open(uri).scan().to_table()
    with pytest.raises(Exception, match=r"terminated|offsets"):
        lance.dataset(uri).to_table()
    dataset = lance_sql.open(uri).delete("id = 0")
    expected = [[BOTH], [{"a": 1, "b": 7}]]
    assert lance.dataset(uri).to_table()["l"].to_pylist() == expected
    assert dataset.scan().to_table()["l"].to_pylist() == expected
    assert dataset.scan(filter="id > 0").to_table()["l"].to_pylist() == expected
    assert dataset.take([2])["l"].to_pylist() == expected[1:]


def test_null_in_one_file_and_empty_in_another(tmp_path: Path) -> None:
    """pylance says null in a scan and an empty list for the row alone; here it is always an empty list."""
    uri = replaced(tmp_path, "2.2", [None, [BOTH]], {0: []})
    theirs = lance.dataset(uri)
    assert theirs.to_table()["l"].to_pylist() == [None, [BOTH]]
    assert theirs.take([0])["l"].to_pylist() == [[]]
    assert lance_sql.open(uri).scan().to_table()["l"].to_pylist() == [[], [BOTH]]


def test_version_0_1_takes_lists_from_the_file_of_their_items(tmp_path: Path) -> None:
    uri = replaced(tmp_path, "legacy", [[BOTH, {"a": 2, "b": 2}], [{"a": 3, "b": 3}]], {0: [{"b": 5}]})
    dataset = lance_sql.open(uri).delete("id = 0")
    # In a scan pylance fails on the lengths at the deleted row.
    assert lance.dataset(uri).take([0])["l"].to_pylist() == [[{"a": 3, "b": 3}]]
    assert dataset.scan().to_table()["l"].to_pylist() == [[{"a": 3, "b": 3}]]


def test_version_2_0_is_refused_as_by_pylance(tmp_path: Path) -> None:
    uri = replaced(tmp_path, "2.0", [[BOTH, BOTH], [{"a": 3, "b": 3}]], {0: [{"b": 5}]})
    with pytest.raises(Exception, match="projection supplied fewer column indices"):
        lance.dataset(uri).to_table()
    with pytest.raises(UnsupportedFeatureError, match=r"Parts of lists of version 2\.0 are in several files"):
        lance_sql.open(uri).scan().to_table()
    assert lance_sql.open(uri).scan(columns=["id"]).to_table().num_rows == 2


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_structs_without_a_stored_field(tmp_path: Path, version: str) -> None:
    """Version 2.0 stores structs themselves, which are never null; later ones store their fields only."""
    uri = str(tmp_path / "t.lance")

    def table(fields: str) -> pa.Table:
        value = dict.fromkeys(fields, 1)
        return pa.table({"id": [1], "s": [value], "n": [{"x": value}], "m": [{"y": [value, value]}]})

    lance.write_dataset(table("ab"), uri, data_storage_version=version)
    lance.write_dataset(table("a"), uri, mode="append")
    lance.dataset(uri).drop_columns(["s.a", "n.x.a", "m.y.item.a"])
    dataset, theirs = lance_sql.open(uri), lance.dataset(uri)
    expected = theirs.to_table()
    assert expected["s"].to_pylist() == [{"b": 1}, {"b": None} if version == "2.0" else None]
    assert dataset.scan().to_table().equals(expected)
    for column in ("s", "n.x", "m", "s.b", "m.y"):
        assert dataset.scan(columns=[column]).to_table().equals(theirs.to_table(columns=[column])), column
        for where in (f"{column} IS NULL", f"{column} IS NOT NULL"):
            found = dataset.scan(columns=["id"], filter=where).to_table()
            assert found.equals(theirs.to_table(columns=["id"], filter=where)), where
    assert dataset.take([1 << 32]).equals(expected.slice(1))
