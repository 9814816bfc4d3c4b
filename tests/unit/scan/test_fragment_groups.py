"""Small fragments that are read together: as if each were read alone, but for what it costs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.file import reader as file_reader
from lance_engine.file.file_group import FileGroup, FilePlace
from lance_engine.io.memory import MemoryStore
from lance_engine.scan import fragment as fragment_module
from lance_engine.scan import fragment_group
from lance_engine.write.dataset import write_dataset

FRAGMENTS, ROWS = 40, 50
TOTAL = FRAGMENTS * ROWS


def table(start: int = 0, rows: int = TOTAL) -> pa.Table:
    numbers = range(start, start + rows)
    return pa.table(
        {
            "at": pa.array(numbers, pa.int64()),
            "text": [f"text {row * 7919 % 101}" if row % 7 else None for row in numbers],
            "kind": [("toys", "books", "games")[row % 3] for row in numbers],
            "some": pa.array([row if row % 3 else None for row in numbers], pa.int32()),
            "flag": [row % 2 == 0 for row in numbers],
            "list": [[row, row + 1][: row % 3] for row in numbers],
            "pair": [{"a": row, "b": str(row)} for row in numbers],
            "vector": pa.array([[row / 2, 1.0] for row in numbers], pa.list_(pa.float32(), 2)),
        }
    )


@pytest.fixture(scope="module", params=["2.1", "2.2"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("groups") / "small.lance")
    write_dataset(table(), folder, max_rows_per_file=ROWS, data_storage_version=request.param)
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many files each group opened."""
    sizes: list[int] = []
    mapped = FileGroup.mapped

    def counted(places: list[FilePlace]) -> FileGroup:
        sizes.append(len(places))
        return mapped(places)

    monkeypatch.setattr(FileGroup, "mapped", counted)
    return sizes


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every fragment is read by itself."""
    with monkeypatch.context() as context:
        context.setattr(fragment_group.FragmentGrouping, "takes", lambda *_: False)
        yield


def refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("this is not needed")


def test_a_scan_opens_its_files_without_the_interpreter(
    uri: str, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "parse_column_metadata", refuse)
    monkeypatch.setattr(fragment_module.FragmentReader, "__init__", refuse)
    batches = list(DatasetVersion.open(uri).scan().to_batches())
    assert pa.Table.from_batches(batches).equals(table())
    assert sum(opened) == FRAGMENTS
    assert len(batches) == len(opened) == 3  # of 4, 16 and 20 fragments


def test_a_fragment_alone_needs_no_parsing_by_the_interpreter(
    uri: str, alone: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reader, "parse_column_metadata", refuse)
    dataset = DatasetVersion.open(uri)
    assert dataset.scan().to_table().equals(table())
    assert dataset.take([3 << 32 | 7])["at"].to_pylist() == [3 * ROWS + 7]


FILTERS = [
    None,
    "at >= 480 AND at < 733",
    "kind = 'toys' AND some % 5 = 1",
    "text LIKE '%17%' OR flag",
    "_rowid IN (3, 4294967301, 17179869184)",
    "pair.a < 75",
]
COLUMNS = [None, ["at"], ["_rowid", "text", "_rowaddr"], [], ["list", "_rowaddr"]]


@pytest.mark.parametrize("filter", FILTERS)
def test_answers_are_those_of_fragments_alone(
    uri: str, filter: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = answers(DatasetVersion.open(uri), filter)
    monkeypatch.setattr(fragment_group.FragmentGrouping, "takes", lambda *_: False)
    assert together == answers(DatasetVersion.open(uri), filter)


def answers(dataset: DatasetVersion, filter: str | None) -> list[Any]:
    found: list[Any] = [dataset.count_rows(filter)]
    for columns in COLUMNS:
        scan = dataset.scan(columns=columns, filter=filter, zone_maps=False)
        rows = scan.to_table()
        metrics = scan.metrics
        assert metrics is not None
        found.append((rows.num_rows, rows.to_pylist()))
        found.append((metrics.fragments_read, metrics.rows_left, metrics.rows_decoded, metrics.rows_out))
        found.append((metrics.pages, metrics.pages_read))
    found.append(dataset.scan(columns=["at"], filter=filter, limit=30, offset=1).to_table().to_pylist())
    coded = dataset.scan(columns=["kind"], filter=filter, dictionaries=["kind"]).to_table()
    found.append(coded["kind"].cast(pa.string()).to_pylist())
    return found


@pytest.mark.parametrize("stable", [False, True])
def test_deleted_and_added_rows(
    tmp_path: Path, stable: bool, opened: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletions, files of two versions, and a column that only some fragments have a file for."""
    uri = str(tmp_path / "mixed.lance")
    lance.write_dataset(
        table(), uri, max_rows_per_file=ROWS, data_storage_version="2.1", enable_stable_row_ids=stable
    )
    dataset = DatasetVersion.open(uri).delete("at % 11 = 3 OR (at >= 200 AND at < 250)")
    dataset = dataset.add_columns({"double": "at * 2"})
    write_dataset(table(TOTAL, 4 * ROWS), uri, mode="append", max_rows_per_file=ROWS)
    dataset = DatasetVersion.open(uri)
    columns = ["at", "double", "_rowid", "_rowaddr", "kind"]
    filters = (None, "double > 300 AND kind = 'books'", "double IS NULL")
    together = [dataset.scan(columns=columns, filter=f).to_table().to_pylist() for f in filters]
    assert sum(opened) > 2 * FRAGMENTS
    monkeypatch.setattr(fragment_group.FragmentGrouping, "takes", lambda *_: False)
    dataset = DatasetVersion.open(uri)
    assert together == [dataset.scan(columns=columns, filter=f).to_table().to_pylist() for f in filters]
    live = [row for row in range(TOTAL) if row % 11 != 3 and not 200 <= row < 250]
    assert [row["at"] for row in together[0]] == live + list(range(TOTAL, TOTAL + 4 * ROWS))


def test_few_rows_open_few_files(uri: str, opened: list[int]) -> None:
    scan = DatasetVersion.open(uri).scan()
    first = next(scan.pieces(scan.start()))
    assert (first.selection.count, opened) == (4 * ROWS, [4])
    opened.clear()
    scan = DatasetVersion.open(uri).scan(limit=3)
    counts = [piece.selection.count for piece in scan.pieces(scan.start())]
    assert (counts, opened) == ([3], [])
    scan = DatasetVersion.open(uri).scan(limit=2 * ROWS, offset=1)
    assert [piece.selection.count for piece in scan.pieces(scan.start())] == [2 * ROWS, 1]


def test_no_file_is_opened_for_rows_without_columns(uri: str, opened: list[int]) -> None:
    assert DatasetVersion.open(uri).scan(columns=[]).to_table().num_rows == TOTAL
    assert DatasetVersion.open(uri).count_rows() == TOTAL
    assert sum(opened) == 0


def test_batches_stay_as_small_as_they_are_asked_to_be(uri: str) -> None:
    batches = list(DatasetVersion.open(uri).scan(batch_size=120).to_batches())
    assert max(batch.num_rows for batch in batches) <= 120
    assert pa.Table.from_batches(batches).equals(table())


@pytest.mark.parametrize("filter", [None, "at >= 0"])
@pytest.mark.parametrize("damage", ["missing", "cut", "pages"])
def test_a_damaged_file_among_many_is_named(tmp_path: Path, damage: str, filter: str | None) -> None:
    uri = tmp_path / "damaged.lance"
    snapshot = write_dataset(table(), str(uri), max_rows_per_file=ROWS)
    file = uri / "data" / snapshot.fragments[23].files[0].path
    content = file.read_bytes()
    file.unlink()  # others may have mapped it
    if damage == "cut":
        file.write_bytes(content[:-100])
    elif damage == "pages":
        file.write_bytes(b"\xff" * (len(content) // 4) + content[len(content) // 4 :])
    with pytest.raises(CorruptFileError) as caught:
        DatasetVersion.open(str(uri)).scan(filter=filter, zone_maps=False).to_table()
    assert caught.value.place["fragment"] == 23
    assert str(caught.value.place["path"]).endswith(file.name)
    rest = DatasetVersion.open(str(uri)).scan(columns=["at"], limit=23 * ROWS).to_table()
    assert rest["at"].to_pylist() == list(range(23 * ROWS))


def test_files_elsewhere_are_not_read_together(opened: list[int]) -> None:
    store = MemoryStore()
    dataset = DatasetVersion(write_dataset(table(), store, max_rows_per_file=ROWS))
    store.reset_counters()
    assert dataset.scan().to_table().equals(table())
    assert store.requests == FRAGMENTS
    assert opened == []


def test_readers_go_with_their_dataset(uri: str) -> None:
    """No reference leads from what a reader keeps back to it: it does not wait for the collector."""
    dataset = DatasetVersion.open(uri)
    gc.collect()
    gc.disable()
    try:
        dataset.take([5])
        dataset.scan(filter="at < 3 AND kind <> 'x'", splits=dataset.splits(1)[:1]).to_table()
        readers = [weakref.ref(reader) for reader in dataset._reader._readers.values()]
        assert readers
        del dataset
        assert [reader() for reader in readers] == [None] * len(readers)
    finally:
        gc.enable()


def test_repeated_scans_test_the_dictionaries_of_each(tmp_path: Path) -> None:
    """Groups of fragments are opened again by every run of a scan, which keeps its tests of values."""
    for number in range(2):
        days = [(row * 7 + number) % 30 for row in range(400)]
        texts = [f"the text of number {day}" for day in days]
        table = pa.table({"day": pa.array(days, pa.int64()), "text": texts})
        write_dataset(table, str(tmp_path / "t.lance"), mode="append" if number else "create")
    dataset = DatasetVersion.open(str(tmp_path / "t.lance"))
    for condition in ("day < 11 OR day = 20", "text LIKE '%1' OR text LIKE '%number 20'"):
        scan = dataset.scan(columns=["day"], filter=condition)
        counts = {scan.count() for _ in range(200)}
        assert counts == {scan.to_table().num_rows}
