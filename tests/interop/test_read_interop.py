"""Datasets written by pylance, read by us: every type, null, nesting and encoding of the corpus."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from corpus import Case, all_cases, blob_cases, by_kind, difference, multi_page_table
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import RowNotFoundError
from lance_engine.scan.splits import ScanSplit
from pylance_files import write_dataset

Pairs = list[tuple[Case, str]]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("pairs", by_kind([*all_cases(), *blob_cases()], with_2_0=True))
def test_the_corpus(tmp_path: Path, pairs: Pairs, subtests: pytest.Subtests) -> None:
    for case, version in pairs:
        expected = case.build()
        uri = str(tmp_path / f"{case.mix}-{version}.lance")
        small = case.group in ("leaf", "nested")
        theirs = write_dataset(Path(uri), expected, version, fragment_rows=100 if small else 1 << 20)
        rng = np.random.default_rng(len(case.name))
        with subtests.test(case.name, version=version):
            check_scan(uri, expected)
            check_row_ranges(uri, theirs, expected, rng)
            check_take(uri, theirs, expected, rng)


def check_scan(uri: str, expected: pa.Table) -> None:
    dataset = DatasetVersion.open(uri)
    assert dataset.count_rows() == expected.num_rows
    assert difference(dataset.scan().to_table(), expected) == ""


def check_row_ranges(
    uri: str, theirs: lance.LanceDataset, expected: pa.Table, rng: np.random.Generator
) -> None:
    dataset = DatasetVersion.open(uri)
    first = 0
    for fragment in theirs.get_fragments():
        rows = fragment.physical_rows
        ranges = [sorted(rng.integers(0, rows + 1, 2).tolist()) for _ in range(3)]
        for start, stop in [*ranges, [rows - 1, rows], [0, 1]]:
            split = ScanSplit(fragment.fragment_id, start, stop)
            actual = dataset.scan(splits=[split]).to_table()
            wanted = expected.slice(first + start, stop - start)
            assert difference(actual, wanted) == "", (start, stop)
        first += rows


def check_take(uri: str, theirs: lance.LanceDataset, expected: pa.Table, rng: np.random.Generator) -> None:
    if expected.num_rows == 0:
        with pytest.raises(RowNotFoundError):
            DatasetVersion.open(uri).take([0])
        return
    positions = rng.integers(0, expected.num_rows, 12)
    positions[3] = positions[7]
    row_ids = theirs.to_table(columns=[], with_row_id=True)["_rowid"].to_numpy()
    actual = DatasetVersion.open(uri).take(row_ids[positions])
    assert difference(actual, expected.take(positions)) == ""


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def wide(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, lance.LanceDataset]:
    """Several columns, four fragments, a few deletions in two of them and all rows of a third."""
    table = next(case for case in all_cases() if case.kind == "wide").build()
    uri = str(tmp_path_factory.mktemp("wide") / "wide.lance")
    dataset = write_dataset(Path(uri), table, request.param, fragment_rows=250)
    dataset.delete("i % 7 = 0 AND _rowid < 500")
    ids = dataset.to_table(columns=[], with_row_id=True)["_rowid"].to_pylist()
    third = [row for row in ids if row >> 32 == 2]
    dataset.delete(f"_rowid >= {min(third)} AND _rowid <= {max(third)}")
    return uri, lance.dataset(uri)


def test_deleted_rows_are_not_read(wide: tuple[str, lance.LanceDataset]) -> None:
    uri, theirs = wide
    ours = DatasetVersion.open(uri)
    assert ours.count_rows() == theirs.count_rows()
    assert difference(ours.scan().to_table(), theirs.to_table()) == ""
    splits = ours.splits(5)
    parts = [ours.scan(splits=[split]).to_table() for split in splits]
    assert difference(pa.concat_tables(parts), theirs.to_table()) == ""


def test_every_version_stays_readable(wide: tuple[str, lance.LanceDataset]) -> None:
    uri, theirs = wide
    for version in [each["version"] for each in theirs.versions()]:
        expected = lance.dataset(uri, version=version).to_table()
        assert difference(DatasetVersion.open(uri, version=version).scan().to_table(), expected) == ""


@pytest.mark.parametrize(
    "columns",
    [["i"], ["b", "i"], ["st", "l"], ["_rowid"], ["_rowaddr", "s"], ["v", "_rowid", "_rowaddr", "i"]],
    ids=" ".join,
)
def test_columns(wide: tuple[str, lance.LanceDataset], columns: list[str]) -> None:
    uri, theirs = wide
    expected = theirs.to_table(
        columns=[name for name in columns if not name.startswith("_row")],
        with_row_id="_rowid" in columns,
        with_row_address="_rowaddr" in columns,
    ).select(columns)
    assert difference(DatasetVersion.open(uri).scan(columns=columns).to_table(), expected) == ""


def test_no_columns_leave_the_row_count(wide: tuple[str, lance.LanceDataset]) -> None:
    uri, theirs = wide
    assert (
        sum(batch.num_rows for batch in DatasetVersion.open(uri).scan(columns=[]).to_batches())
        == theirs.count_rows()
    )


@pytest.mark.parametrize("limit", [0, 1, 57, 100_000])
@pytest.mark.parametrize("offset", [0, 1, 240, 600])
def test_limit_and_offset(wide: tuple[str, lance.LanceDataset], limit: int, offset: int) -> None:
    uri, theirs = wide
    actual = DatasetVersion.open(uri).scan(columns=["i", "s"], limit=limit, offset=offset).to_table()
    expected = theirs.to_table(columns=["i", "s"]).slice(offset, limit)
    assert difference(actual, expected) == ""


@pytest.mark.parametrize(
    "condition",
    [
        "i > 500",
        "i % 3 = 0",
        "s IS NULL",
        "s LIKE 'a%' AND i < 700",
        "NOT b",
        "b OR i = 3",
        "i IN (1, 2, 700)",
    ],
)
def test_filters(wide: tuple[str, lance.LanceDataset], condition: str) -> None:
    uri, theirs = wide
    expected = theirs.to_table(filter=condition, columns=["i", "st", "l"])
    ours = DatasetVersion.open(uri)
    assert difference(ours.scan(columns=["i", "st", "l"], filter=condition).to_table(), expected) == ""
    assert ours.count_rows(filter=condition) == expected.num_rows


def test_batches_keep_their_size(wide: tuple[str, lance.LanceDataset]) -> None:
    uri, theirs = wide
    batches = list(DatasetVersion.open(uri).scan(batch_size=64).to_batches())
    assert max(batch.num_rows for batch in batches) <= 64
    assert difference(pa.Table.from_batches(batches), theirs.to_table()) == ""


def test_taking_a_deleted_row_says_which(wide: tuple[str, lance.LanceDataset]) -> None:
    uri, theirs = wide
    third = 2 << 32
    with pytest.raises(RowNotFoundError, match=str(third)):
        DatasetVersion.open(uri).take([0 if theirs.count_rows(filter="_rowid = 0") else 1, third])


def test_stable_row_ids(tmp_path: Path) -> None:
    table = next(case for case in all_cases() if case.kind == "wide").build()
    uri = str(tmp_path / "stable.lance")
    theirs = write_dataset(Path(uri), table, "2.1", fragment_rows=250, enable_stable_row_ids=True)
    theirs.delete("i < 300")
    theirs.optimize.compact_files(target_rows_per_fragment=1000)
    expected = theirs.to_table(with_row_id=True, with_row_address=True)
    ours = DatasetVersion.open(uri)
    assert difference(ours.scan(columns=expected.column_names).to_table(), expected) == ""
    picks = np.random.default_rng(1).integers(0, expected.num_rows, 50)
    taken = ours.take(expected["_rowid"].to_numpy()[picks], columns=expected.column_names)
    assert difference(taken, expected.take(picks)) == ""


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_added_later_live_in_other_files(tmp_path: Path, version: str) -> None:
    table = next(case for case in all_cases() if case.kind == "wide").build()
    theirs = write_dataset(tmp_path / "t.lance", table, version, fragment_rows=400)
    theirs.add_columns({"twice": "i * 2"})
    theirs.drop_columns(["l"])
    theirs.alter_columns({"path": "s", "name": "text"})
    expected = lance.dataset(str(tmp_path / "t.lance")).to_table()
    ours = DatasetVersion.open(str(tmp_path / "t.lance"))
    assert difference(ours.scan().to_table(), expected) == ""
    assert difference(ours.take([3, 1 << 32, 3]), expected.take([3, 400, 3])) == ""


def coded(prefix: str) -> pa.Table:
    """A hundred words by 8-bit codes."""
    words = pa.array([f"{prefix}{number}" for number in range(100)])
    return pa.table({"value": pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), words)})


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pages_with_more_words_than_codes(tmp_path: Path, version: str) -> None:
    """Each page has a dictionary of its own; together their words exceed the codes of the type."""
    batches = [batch for prefix in "abc" for batch in coded(prefix).to_batches()]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
    uri = str(tmp_path / "coded.lance")
    lance.write_dataset(reader, uri, data_storage_version=version, data_cache_bytes=1)
    ours = DatasetVersion.open(uri)
    words = [f"{prefix}{number}" for prefix in "abc" for number in range(100)]
    table = ours.scan().to_table()
    assert table.schema == batches[0].schema
    assert table["value"].to_pylist() == words
    assert ours.take(range(300)).to_pydict()["value"] == words


def test_maps_of_coded_words(tmp_path: Path) -> None:
    arrow_type = pa.map_(pa.string(), pa.dictionary(pa.int8(), pa.string()))
    plain = pa.array([[("a", "x"), ("b", "y")], None, [], [("c", "x")]], pa.map_(pa.string(), pa.string()))
    words = plain.items.dictionary_encode().cast(arrow_type.item_type)
    maps = pa.MapArray.from_arrays(plain.offsets, plain.keys, words, type=arrow_type, mask=plain.is_null())
    write_dataset(tmp_path / "maps.lance", pa.table({"value": maps}), "2.2")
    table = DatasetVersion.open(str(tmp_path / "maps.lance")).scan().to_table()
    assert table.schema.field("value").type == arrow_type
    assert table["value"].to_pylist() == plain.to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_columns_of_several_pages(tmp_path: Path, version: str) -> None:
    table = multi_page_table()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=4000))
    uri = str(tmp_path / "pages.lance")
    theirs = lance.write_dataset(reader, uri, data_storage_version=version)
    ours = DatasetVersion.open(uri)
    assert difference(ours.scan().to_table(), theirs.to_table()) == ""
    for start, stop in ((0, 10), (9_990, 10_010), (3_999, 20_001), (23_999, 24_000)):
        actual = ours.scan(splits=[ScanSplit(0, start, stop)]).to_table()
        assert difference(actual, table.slice(start, stop - start)) == ""
    picks = np.random.default_rng(2).integers(0, table.num_rows, 200)
    assert difference(ours.take(picks), table.take(picks)) == ""
