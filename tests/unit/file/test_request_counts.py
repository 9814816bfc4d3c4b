"""How many requests opening a remote file and reading single rows cost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine import dataset, kernels
from lance_engine.fetch import fetcher
from lance_engine.file import contents, reader
from lance_engine.file.lasting import LASTING
from lance_engine.file.reader import FileReader
from lance_engine.io.coalesce import MAX_GAP, coalesce
from lance_engine.io.memory import MemoryStore
from lance_engine.write.dataset import write_dataset
from native_files import NativeFile
from pylance_files import write_file

ROWS = 4000
RNG = np.random.default_rng(5)


class CountingStore(MemoryStore):
    """Also counts requests for the size of a file."""

    def size(self, path: str) -> int:
        self.requests += 1
        return super().size(path)


def with_nulls(array: pa.Array) -> pa.Array:
    values = array.to_pylist()
    return pa.array([None if row % 7 == 0 else value for row, value in enumerate(values)], array.type)


def lists(item: pa.DataType, value: object) -> pa.Array:
    return pa.array([[value] * (row % 5) for row in range(ROWS)], pa.list_(item))


NUMBERS = pa.array(RNG.integers(0, 2**40, ROWS))
TEXT = pa.array([RNG.bytes(8).hex() for _ in range(ROWS)])
FLAT = {
    "numbers": NUMBERS,
    "numbers with nulls": with_nulls(NUMBERS),
    "booleans": pa.array(RNG.random(ROWS * 20) > 0.5),
    "runs": pa.array(np.arange(ROWS * 3) // 50 * 1001),
    "text": TEXT,
    "text with nulls": with_nulls(TEXT),
    "few words": pa.array([f"word {row * 7 % 60}" for row in range(ROWS * 8)]),
    "wide binary": pa.array([RNG.bytes(400) for _ in range(1000)], pa.large_binary()),
    "vectors": pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(1000 * 64).astype("f4")), 64),
    "vectors with nulls": with_nulls(
        pa.FixedSizeListArray.from_arrays(pa.array(RNG.random(1000 * 64).astype("f4")), 64)
    ),
    "decimals": pa.array(range(ROWS), pa.decimal128(38, 0)),
    "nothing": pa.nulls(ROWS, pa.int32()),
}
NESTED = {
    "struct": pa.StructArray.from_arrays([TEXT], ["text"]),
    "lists": lists(pa.int32(), 7),
    "lists with nulls": with_nulls(lists(pa.int64(), 2**40)),
    "lists of text": lists(pa.string(), "some text"),
    "lists of structs": lists(pa.struct([("a", pa.int16()), ("b", pa.string())]), {"a": 5, "b": "text"}),
    "lists of lists of structs": lists(
        pa.list_(pa.struct([("a", pa.int32()), ("b", pa.int64())])), [{"a": 1, "b": 2}]
    ),
    "lists of lists": lists(pa.list_(pa.int32()), [1, 2, 3]),
    "lists of lists of text": lists(pa.list_(pa.string()), ["a", "bc"]),
    "vectors in lists": lists(pa.list_(pa.float32(), 3), [1.0, 2.0, 3.0]),
}
CASES = [(name, 1) for name in FLAT] + [(name, 2) for name in NESTED]


@pytest.fixture
def exact_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files must not come whole with their footers, nor neighbours with what is asked for."""
    monkeypatch.setattr(contents, "TAIL_SIZE", 2048)
    monkeypatch.setattr(fetcher, "coalesce", functools.partial(coalesce, max_gap=0))


def file_of(table: pa.Table, version: str, writer: str, folder: Path) -> bytes:
    if writer == "pylance":
        return write_file(folder / "file.lance", table, version)
    write_dataset(table, str(folder / "ours"), data_storage_version=version)
    (path,) = (folder / "ours" / "data").glob("*.lance")
    return path.read_bytes()


@pytest.mark.sampled(30)
@pytest.mark.parametrize("writer", ["pylance", "ours"])
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(("name", "most"), CASES)
def test_a_row(exact_requests: None, tmp_path: Path, name: str, most: int, version: str, writer: str) -> None:
    """In addition to the chunk index, the dictionary or the offsets of its page, which are read once."""
    array = {**FLAT, **NESTED}[name]
    table = pa.table({"value": array})
    store = MemoryStore()
    store.put("file.lance", file_of(table, version, writer, tmp_path))
    file = NativeFile(store, "file.lance", table.schema)
    for row in range(3, len(array), len(array) // 40):
        file.rows_at([row])  # now every page is known
    rows = RNG.integers(0, len(array), 12).tolist()
    for row in rows:
        store.reset_counters()
        found = file.rows_at([row])
        assert store.requests <= most
        assert store.bytes_read < 40_000
        assert found["value"].to_pylist() == array.slice(row, 1).to_pylist()


def test_blobs(exact_requests: None, tmp_path: Path) -> None:
    """The place of a blob is known once its page is, the blob itself is one request."""
    blobs = pa.array([RNG.bytes(3000) for _ in range(100)], pa.large_binary())
    schema = pa.schema([pa.field("value", blobs.type, metadata={"lance-encoding:blob": "true"})])
    for version in ("2.0", "2.1"):
        (tmp_path / version).mkdir()
        store = MemoryStore()
        table = pa.table({"value": blobs}, schema)
        store.put("file.lance", file_of(table, version, "ours", tmp_path / version))
        file = NativeFile(store, "file.lance", schema)
        file.rows_at([1])
        for row in (0, 50, 99):
            store.reset_counters()
            assert file.rows_at([row])["value"].to_pylist() == [blobs[row].as_py()]
            assert store.requests == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_opening_a_file(tmp_path: Path, version: str) -> None:
    data = file_of(pa.table({"a": NUMBERS, "b": TEXT}), version, "ours", tmp_path)
    store = CountingStore()
    store.put("file.lance", data)
    file = FileReader(store, "file.lance", size=len(data))
    assert [len(file.column_metadata(index).pages) for index in range(2)] == [1, 1]
    assert file.descriptor.length == ROWS
    assert store.requests == 1
    store.reset_counters()
    file = FileReader(store, "file.lance")
    assert file.num_columns == 2
    assert file.column_metadata(0).rows == ROWS
    assert store.requests == 1  # its size: how it ends is known
    LASTING.clear()
    store.reset_counters()
    assert FileReader(store, "file.lance").column_metadata(0).rows == ROWS
    assert store.requests == 2


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_three_of_ten_thousand_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Only the metadata of the three are fetched and parsed, whatever the width of the table."""
    count, names = 10_000, ["c17", "c5000", "c9999"]
    schema = pa.schema([(f"c{number}", pa.int32()) for number in range(count)])
    table = pa.Table.from_arrays(
        [pa.array([number, -number], pa.int32()) for number in range(count)], schema=schema
    )
    write_dataset(table, str(tmp_path / "wide"), data_storage_version=version, zone_maps=False)
    store = CountingStore()
    for path in (tmp_path / "wide").rglob("*.*"):
        store.put(str(path.relative_to(tmp_path / "wide")), path.read_bytes())
    parsed = []

    def counted(parse: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object) -> object:
            parsed.append(arguments)
            return parse(*arguments)

        return run

    monkeypatch.setattr(reader, "parse_column_metadata", counted(reader.parse_column_metadata))
    for name in ("column_pages", "array_pages"):
        monkeypatch.setattr(kernels, name, counted(getattr(kernels, name)))
    opened = dataset.DatasetVersion.open(store)
    assert opened.schema.names[5000] == "c5000"
    store.reset_counters()
    found = opened.scan(columns=names).to_table()
    assert found.to_pydict() == {"c17": [17, -17], "c5000": [5000, -5000], "c9999": [9999, -9999]}
    assert len(parsed) == 3
    # The footer; three entries of the table of columns, of which the tail may hold one; three metadata; chunk
    # index and data of three columns.
    assert store.requests <= 13
    assert store.bytes_read < contents.TAIL_SIZE + 3 * MAX_GAP


def test_inspections_of_a_version_open_its_files_once(tmp_path: Path) -> None:
    for part in range(3):
        table = pa.table({"a": NUMBERS, "b": TEXT})
        write_dataset(table, str(tmp_path / "d"), mode="append" if part else "create")
    store = CountingStore()
    for path in (tmp_path / "d").rglob("*.*"):
        store.put(str(path.relative_to(tmp_path / "d")), path.read_bytes())
    inspect = dataset.DatasetVersion.open(store).inspect
    store.reset_counters()
    columns = inspect.columns()
    assert columns["pages"].to_pylist() == [3, 3]
    assert store.requests == 3  # the tail of every file
    assert inspect.pages().num_rows == 6
    assert inspect.statistics()["null_count"].to_pylist() == [0, 0]
    assert inspect.zones().num_rows == 6
    assert store.requests == 3
