"""Datasets of the first file version, written by pylance: read as it reads them, changed where possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import Case, by_kind, difference, leaf_cases, nested_cases
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.memory import MemoryStore
from lance_engine.scan.splits import ScanSplit
from lance_engine.table.versions import open_snapshot

import lance_sql


def is_in_0_1(case: Case) -> bool:
    """Whether pylance writes the case: not maps, fixed-size lists of structs or dictionaries without rows."""
    never = ("map", "fixed_size_list<struct", "fixed_size_list<item: null", "values=bool", "values=float")
    refused = any(kind in case.kind for kind in never)
    return not refused and not ("dictionary" in case.kind and case.mix == "no rows")


KINDS = by_kind(
    replace(case, versions=("legacy",)) for case in [*leaf_cases(), *nested_cases()] if is_in_0_1(case)
)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pairs", KINDS)
def test_scan_ranges_and_rows(
    tmp_path: Path, pairs: list[tuple[Case, str]], subtests: pytest.Subtests
) -> None:
    """Datasets of several batches and fragments are read as pylance reads them: nulls are not stored."""
    for case, version in pairs:
        uri = str(tmp_path / f"{case.mix}.lance")
        lance.write_dataset(
            case.build(), uri, data_storage_version=version, max_rows_per_group=50, max_rows_per_file=100
        )
        with subtests.test(case.name):
            check_scan_ranges_and_rows(uri, lance.dataset(uri).to_table())


def check_scan_ranges_and_rows(uri: str, expected: pa.Table) -> None:
    dataset = DatasetVersion.open(uri)
    assert difference(dataset.scan().to_table(), expected) == ""
    if expected.num_rows == 0:
        return
    for start, stop in ((0, 1), (49, 51), (85, 100), (40, 80)):
        actual = dataset.scan(splits=[ScanSplit(0, start, stop)]).to_table()
        assert difference(actual, expected.slice(start, stop - start)) == "", (start, stop)
    rows = [149, 0, 100, 49, 50, 0, 99]
    ids = [row if row < 100 else (1 << 32) + row - 100 for row in rows]
    assert difference(dataset.take(ids), expected.take(rows).combine_chunks()) == ""


TABLE = pa.table(
    {
        "id": range(10),
        "s": ["x", "", None, "yy", "z"] * 2,
        "at": [{"x": number, "tags": ["t"] * number} for number in range(10)],
        "v": pa.array([[number, 1.5] for number in range(10)], pa.list_(pa.float32(), 2)),
    }
)
CODED = TABLE.append_column("d", pa.array(["u", "", "u", "v", None] * 2).dictionary_encode())


def write(path: Path, table: pa.Table) -> str:
    lance.write_dataset(table, str(path), data_storage_version="0.1", max_rows_per_group=4)
    return str(path)


def test_nulls_read_as_the_version_has_them(tmp_path: Path) -> None:
    """Empty strings of nullable columns are null, of others not; other nulls are what their slots hold."""
    schema = pa.schema([("n", pa.int32()), ("s", pa.string()), pa.field("t", pa.string(), nullable=False)])
    table = pa.table([[1, None, 3], ["", None, "a"], ["", "", "b"]], schema=schema)
    actual = DatasetVersion.open(write(tmp_path / "t.lance", table)).scan().to_table()
    assert actual.to_pydict() == {"n": [1, 0, 3], "s": [None, None, "a"], "t": ["", "", "b"]}


def test_filters_and_counts(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", CODED)
    dataset = lance_sql.open(uri)
    for condition in ("id > 3 AND s = 'yy'", "s IS NULL", "d = 'u'", "at.x >= 8"):
        expected = lance.dataset(uri).to_table(filter=condition)
        assert difference(dataset.scan(filter=condition).to_table(), expected) == ""
        assert dataset.count_rows(condition) == expected.num_rows
    for engine in ("duckdb", "datafusion"):
        query = f"SELECT s, count(*) AS n FROM '{uri}' WHERE id < 7 GROUP BY s ORDER BY s NULLS FIRST"
        answer = lance_sql.sql(query, engine=engine).arrow()
        assert answer.to_pydict() == {"s": [None, "x", "yy", "z"], "n": [3, 2, 1, 1]}


def test_deletions_of_both(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", TABLE)
    lance.dataset(uri).delete("id = 2")
    dataset = lance_sql.open(uri).delete("id >= 8")
    assert dataset.scan(columns=["id"]).to_table()["id"].to_pylist() == [0, 1, 3, 4, 5, 6, 7]
    assert difference(lance.dataset(uri).to_table(), dataset.scan().to_table()) == ""


def test_columns_in_several_files(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", TABLE)
    theirs = lance.dataset(uri)
    theirs.add_columns({"twice": "id * 2", "again": "s"})
    theirs = lance.dataset(uri)
    theirs.drop_columns(["id"])
    assert len(theirs.get_fragments()[0].data_files()) == 2
    actual = lance_sql.open(uri).scan().to_table()
    assert actual["twice"].to_pylist() == list(range(0, 20, 2))
    assert difference(actual, lance.dataset(uri).to_table()) == ""


def test_a_store_that_is_not_local(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", CODED)
    store = MemoryStore()
    for path in Path(uri).rglob("*"):
        if path.is_file():
            store.put(str(path.relative_to(uri)), path.read_bytes())
    dataset = DatasetVersion(open_snapshot(store))
    expected = lance.dataset(uri).to_table()
    assert difference(dataset.scan().to_table(), expected) == ""
    assert difference(dataset.take([8, 3]), expected.take([8, 3]).combine_chunks()) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda dataset: dataset.update({"id": "1"}),
        lambda dataset: dataset.add_columns({"n": "id"}),
        lambda dataset: dataset.compact(deleted_share=-1),
        lambda dataset: lance_sql.write(TABLE, dataset.uri, mode="append"),
    ],
)
def test_what_writes_data_files_is_refused(
    tmp_path: Path, change: Callable[[lance_sql.Dataset], object]
) -> None:
    uri = write(tmp_path / "t.lance", TABLE)
    with pytest.raises(
        UnsupportedFeatureError, match=r"of version 0\.1(: this release cannot add| cannot get)"
    ):
        change(lance_sql.open(uri))
    assert lance_sql.open(uri).version == 1


def test_what_needs_no_data_file_works(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", TABLE)
    lance_sql.open(uri).rename_column("s", "t").delete(row_ids=[3]).update_config({"a": "b"}).tags.create("x")
    ours, theirs = lance_sql.open(uri).scan().to_table(), lance.dataset(uri).to_table()
    assert ours["id"].to_pylist() == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert lance_sql.open(uri).verify().num_rows == 0
    assert difference(ours, theirs) == ""


def test_dictionaries_in_the_manifest_are_kept(tmp_path: Path) -> None:
    """A new manifest would lack their values, so it is refused; without the column it is allowed."""
    uri = write(tmp_path / "t.lance", CODED)
    with pytest.raises(UnsupportedFeatureError, match="dictionary column are read-only") as caught:
        lance_sql.open(uri).delete("id = 1")
    assert caught.value.place["column"] == "d"
    lance_sql.open(uri).drop_columns(["d"])
    assert difference(lance.dataset(uri).to_table(), lance_sql.open(uri).scan().to_table()) == ""


def test_overwriting_in_a_newer_version(tmp_path: Path) -> None:
    uri = write(tmp_path / "t.lance", CODED)
    lance_sql.write(TABLE, uri, mode="overwrite")
    assert lance.dataset(uri).data_storage_version == "2.1"
    assert difference(lance_sql.open(uri).scan().to_table(), TABLE) == ""
    assert np.array_equal(lance.dataset(uri).to_table()["id"], TABLE["id"])
