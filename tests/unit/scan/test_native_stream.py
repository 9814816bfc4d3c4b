"""The Arrow C stream of a scan: order, errors, early ends, threads, and the exit of the interpreter."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.cache import memory_limit, set_memory_limit
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.metrics import ScanMetrics
from lance_engine.scan.plan import Piece
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.stream import ScanStream, native_stream
from lance_engine.write.dataset import write_dataset

ROWS = 300_000


def table(rows: int = ROWS) -> pa.Table:
    numbers = np.arange(rows)
    return pa.table(
        {
            "id": pa.array(numbers),
            "text": pa.array([f"row {number * 7919 % 1000}" for number in range(rows)]),
            "maybe": pa.array(numbers, mask=numbers % 3 == 0),
        }
    )


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetVersion:
    path = str(tmp_path_factory.mktemp("stream") / "rows.lance")
    write_dataset(table(), path, max_rows_per_file=70_000)
    return DatasetVersion.open(path)


def read(scanner: Scanner) -> pa.Table:
    return pa.RecordBatchReader._import_from_c_capsule(native_stream(scanner)).read_all()


def test_rows_arrive_in_order(dataset: DatasetVersion) -> None:
    assert read(dataset.scan()).equals(table())


@pytest.mark.parametrize(
    "options", [{"filter": "maybe > 1000"}, {"columns": ["id", "_rowid"]}, {"columns": []}]
)
def test_rows_that_the_scanner_reads(dataset: DatasetVersion, options: dict[str, object]) -> None:
    found = read(dataset.scan(**options))  # type: ignore[arg-type]
    assert found.num_rows == dataset.scan(**options).count()  # type: ignore[arg-type]
    if "id" in found.column_names:
        ids = found["id"].to_numpy()
        assert (np.diff(ids) > 0).all()


def test_deleted_rows_are_left_out(tmp_path: Path) -> None:
    write_dataset(table(), str(tmp_path / "d.lance"), max_rows_per_file=100_000)
    dataset = DatasetVersion.open(str(tmp_path / "d.lance")).delete("id >= 120000 AND id < 120010")
    expected = [number for number in range(ROWS) if not 120_000 <= number < 120_010]
    assert read(dataset.scan(["id"]))["id"].to_pylist() == expected


@pytest.mark.parametrize(
    ("offset", "limit"),
    [(0, 0), (0, 1), (5, 10), (69_990, 20), (130_000, 100_001), (0, ROWS), (ROWS - 3, 10)],
)
@pytest.mark.parametrize("filter", [None, "id + 0 >= 0"])
def test_limit_and_offset(dataset: DatasetVersion, offset: int, limit: int, filter: str | None) -> None:
    found = read(dataset.scan(offset=offset, limit=limit, filter=filter))
    assert found.equals(table().slice(offset, limit))


@pytest.mark.parametrize("read_ahead", [0, 1, 1 << 20])
def test_any_read_ahead_gives_the_same(dataset: DatasetVersion, read_ahead: int) -> None:
    assert read(dataset.scan(read_ahead=read_ahead)).equals(table())


def test_the_memory_limit_sets_the_read_ahead(dataset: DatasetVersion) -> None:
    before = memory_limit()
    set_memory_limit(40 << 20)
    try:
        assert dataset.scan().read_ahead == 10 << 20
        assert dataset.scan(read_ahead=7).read_ahead == 7
    finally:
        set_memory_limit(before)


@pytest.mark.parametrize("threads", ["1", "2", "7"])
def test_any_number_of_threads_gives_the_same(
    dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("LANCE_SQL_THREADS", threads)
    assert read(dataset.scan(batch_size=10_000)).equals(table())


def test_batches_have_no_more_rows_than_asked_for(dataset: DatasetVersion) -> None:
    sizes = {batch.num_rows for batch in dataset.scan(batch_size=9_999).to_batches()}
    assert max(sizes) <= 9_999


def test_schema_can_be_asked_for_again(dataset: DatasetVersion) -> None:
    scan = dataset.scan(["text", "id"])
    reader = pa.RecordBatchReader._import_from_c_capsule(native_stream(scan))
    assert reader.schema == scan.schema
    assert pa.table(scan).schema == scan.schema


def test_released_stream_reads_no_more(dataset: DatasetVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the batches at work when the consumer left are read."""
    asked: list[int] = []
    scanner = dataset.scan(filter="id >= 0", batch_size=100, zone_maps=False, read_ahead=1 << 16)
    read_piece = scanner.reader.read

    def watched(piece: Piece, metrics: ScanMetrics) -> list[pa.RecordBatch]:
        asked.append(piece.selection.begin)
        return read_piece(piece, metrics)

    monkeypatch.setattr(scanner.reader, "read", watched)
    reader = pa.RecordBatchReader._import_from_c_capsule(native_stream(scanner))
    reader.read_next_batch()
    reader.close()
    at_close = len(asked)
    assert 0 < at_close < ROWS // 100
    settled = threading.Event()
    settled.wait(0.2)
    assert len(asked) <= at_close + 8


def test_unused_stream_reads_nothing(dataset: DatasetVersion) -> None:
    stream = ScanStream(dataset.scan())
    del stream
    capsule = native_stream(dataset.scan(filter="id > 3"))
    del capsule


def corrupt(path: Path) -> None:
    """Damage the data of the second file, but not its metadata."""
    files = sorted(path.glob("data/*.lance"), key=lambda file: file.stat().st_mtime_ns)
    data = bytearray(files[1].read_bytes())
    data[64 : len(data) // 2] = b"\xff" * (len(data) // 2 - 64)
    files[1].write_bytes(data)


@pytest.fixture
def damaged(tmp_path: Path) -> DatasetVersion:
    write_dataset(table(), str(tmp_path / "x.lance"), max_rows_per_file=100_000)
    corrupt(tmp_path / "x.lance")
    return DatasetVersion.open(str(tmp_path / "x.lance"))


def test_error_reaches_the_consumer_as_text(damaged: DatasetVersion) -> None:
    reader = pa.RecordBatchReader._import_from_c_capsule(native_stream(damaged.scan()))
    with pytest.raises(pa.ArrowInvalid, match=r"path: data/.*fragment: 1, column: id"):
        reader.read_all()


def test_rows_before_an_error_arrive(damaged: DatasetVersion) -> None:
    reader = pa.RecordBatchReader._import_from_c_capsule(native_stream(damaged.scan(["id"])))
    batches: list[pa.RecordBatch] = []
    with pytest.raises(pa.ArrowInvalid):
        batches.extend(iter(reader))
    assert sum(batch.num_rows for batch in batches) >= 100_000
    with pytest.raises(pa.ArrowInvalid):
        reader.read_next_batch()


@pytest.mark.parametrize("how", ["to_table", "to_batches"])
def test_scanner_raises_our_errors(damaged: DatasetVersion, how: str) -> None:
    with pytest.raises(CorruptFileError) as caught:
        list(getattr(damaged.scan(), how)())
    assert "column" in str(caught.value)


def test_many_streams_at_once(dataset: DatasetVersion) -> None:
    expected = table()
    wrong: list[int] = []

    def consume(number: int) -> None:
        filter = "id + 0 >= 0" if number % 2 else None
        if not read(dataset.scan(filter=filter, batch_size=7_000)).equals(expected):
            wrong.append(number)

    threads = [threading.Thread(target=consume, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("filter", [None, "id + 0 >= 0"])
def test_interpreter_may_exit_at_any_time(dataset: DatasetVersion, filter: str | None) -> None:
    script = f"""
        import pyarrow as pa
        from lance_engine.dataset import DatasetVersion
        from lance_engine.scan.stream import native_stream
        dataset = DatasetVersion.open({dataset.uri!r})
        streams = []
        for _ in range(6):
            scan = dataset.scan(filter={filter!r}, batch_size=1000)
            reader = pa.RecordBatchReader._import_from_c_capsule(native_stream(scan))
            reader.read_next_batch()
            streams.append(reader)
        del streams[::2], reader
        print("done")
    """
    run = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")
