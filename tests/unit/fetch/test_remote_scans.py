"""How many requests scans and lookups of remote files take, how many bytes, and how many are in flight."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance_engine.cache import memory_limit, set_memory_limit
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import CorruptFileError
from lance_engine.file.contents import TAIL_SIZE
from lance_engine.file.reader import FileReader
from lance_engine.metrics import ScanMetrics
from lance_engine.scan.fragment_group import FragmentGroup
from lance_engine.write.dataset import write_dataset
from remote_store import RemoteStore

ROWS = 400_000
RNG = np.random.default_rng(11)


def rows(count: int) -> pa.Table:
    return pa.table(
        {
            "id": np.arange(count),
            "price": RNG.random(count),
            "amount": RNG.integers(0, 1 << 40, count),
            "day": np.arange(count, dtype=np.int32) // 1000,
            "flag": RNG.integers(0, 50, count).astype(np.int8),
            "text": pa.array([f"text number {n * 7919 % count}" for n in range(count)]),
        }
    )


@pytest.fixture(scope="module")
def one_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scans") / "one.lance"
    write_dataset(rows(ROWS), str(path), data_storage_version="2.1")
    return path


@pytest.fixture(scope="module")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scans") / "many.lance"
    write_dataset(rows(60_000), str(path), max_rows_per_file=300, data_storage_version="2.1")
    return path


def opened(path: Path, latency: float = 0.002, gathered: int = 0) -> tuple[RemoteStore, DatasetVersion]:
    store = RemoteStore.of_folder(path, latency)
    dataset = DatasetVersion.open(store)  # type: ignore[arg-type]
    store.reset_counters()
    store.gather(gathered)
    return store, dataset


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in (path / "data").iterdir())


def test_a_whole_scan(one_file: Path) -> None:
    store, dataset = opened(one_file, gathered=2)
    found = dataset.scan().to_table()
    assert found.equals(DatasetVersion.open(str(one_file)).scan().to_table())
    assert store.requests <= 30
    assert store.bytes_read <= 1.1 * size_of(one_file)
    assert store.most_in_flight >= 2


def test_one_column(one_file: Path) -> None:
    store, dataset = opened(one_file)
    found = dataset.scan(columns=["price"]).to_table()
    assert found.equals(DatasetVersion.open(str(one_file)).scan(columns=["price"]).to_table())
    assert store.requests <= 6
    assert store.bytes_read <= 1.3 * ROWS * 8


@pytest.mark.parametrize("limit", [1, 10, 1000])
def test_a_limit(one_file: Path, limit: int) -> None:
    store, dataset = opened(one_file)
    assert dataset.scan(limit=limit).to_table().num_rows == limit
    assert store.requests <= 9
    assert store.bytes_read <= 1 << 20


def test_a_limit_with_a_filter(one_file: Path) -> None:
    store, dataset = opened(one_file)
    found = dataset.scan(filter="flag = 7", limit=10).to_table()
    assert found.equals(DatasetVersion.open(str(one_file)).scan(filter="flag = 7").to_table().slice(0, 10))
    assert store.bytes_read <= 1 << 20


def test_a_filter_that_leaves_much(one_file: Path) -> None:
    store, dataset = opened(one_file)
    filter = "flag < 10 AND amount < 500000000000"
    found = dataset.scan(columns=["price"], filter=filter).to_table()
    local = DatasetVersion.open(str(one_file)).scan(columns=["price"], filter=filter)
    assert found.equals(local.to_table())
    assert store.requests <= 20
    assert store.bytes_read <= 1.2 * ROWS * (8 + 8 + 1)


def test_many_files(many_files: Path) -> None:
    store, dataset = opened(many_files, gathered=32)
    found = dataset.scan(columns=["price"]).to_table()
    assert found.equals(DatasetVersion.open(str(many_files)).scan(columns=["price"]).to_table())
    assert store.requests <= 200  # one for each file
    assert store.most_in_flight >= 32


def test_a_limit_opens_few_files(many_files: Path) -> None:
    store, dataset = opened(many_files)
    assert dataset.scan(limit=10).to_table().num_rows == 10
    assert store.requests <= 2


def test_a_scan_that_ends_early_stops_fetching(one_file: Path) -> None:
    store, dataset = opened(one_file)
    batches = dataset.scan(read_ahead=1 << 20, batch_size=4096).to_batches()
    next(batches)
    batches.close()
    assert store.bytes_read < size_of(one_file) / 2


def test_a_scan_holds_no_more_than_it_may_read_ahead(one_file: Path) -> None:
    """While nobody takes batches, no more is fetched than that and what the batch at work needs."""
    store, dataset = opened(one_file, 0.0)
    with dataset.scan(columns=["text", "amount"], read_ahead=1 << 20).to_reader() as reader:
        reader.read_next_batch()
        assert store.bytes_read < 6 << 20


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_lookups(one_file: Path, count: int) -> None:
    """Cold: footer, chunk indices and data come one after the other, each of all columns together."""
    store, dataset = opened(one_file, 0.0)
    wanted = RNG.integers(0, ROWS, count)
    expected = DatasetVersion.open(str(one_file)).take(wanted)
    metrics = ScanMetrics()
    assert dataset.take(wanted, metrics=metrics).equals(expected)
    assert (metrics.requests, metrics.bytes_read) == (store.requests, store.bytes_read)
    assert metrics.rows_out == count
    assert metrics.seconds["total"] > 0
    assert store.requests <= 3 + 6 * (2 + count)
    assert store.bytes_read <= 700_000 + 120_000 * count
    assert store.bytes_read <= 1.1 * size_of(one_file)
    store.reset_counters()
    assert dataset.take(wanted).equals(expected)
    assert store.requests <= 6 * count
    assert store.bytes_read <= min(120_000 * count, 1.1 * size_of(one_file))


def test_the_option_bounds_what_is_in_flight(many_files: Path) -> None:
    store, dataset = opened(many_files)
    store.max_in_flight = 2  # type: ignore[attr-defined]
    assert dataset.scan(columns=["price"]).to_table().num_rows == 60_000
    assert store.requests <= 200
    assert store.most_in_flight <= 2


def test_a_lookup_in_many_files_opens_them_together(many_files: Path) -> None:
    store, dataset = opened(many_files, gathered=32)
    wanted = np.arange(0, 200, 2, dtype=np.uint64) << np.uint64(32)
    assert dataset.take(wanted, ["id"]).equals(DatasetVersion.open(str(many_files)).take(wanted, ["id"]))
    assert store.requests <= 100
    assert store.most_in_flight >= 32


def test_zone_maps_and_deletions_are_fetched_together(many_files: Path, tmp_path: Path) -> None:
    shutil.copytree(many_files, tmp_path / "deleted.lance")
    local = DatasetVersion.open(str(tmp_path / "deleted.lance")).delete("id % 100 = 7")
    store, dataset = opened(tmp_path / "deleted.lance", gathered=32)
    assert (
        dataset.scan(columns=["id"], filter="flag = 3")
        .to_table()
        .equals(local.scan(columns=["id"], filter="flag = 3").to_table())
    )
    assert store.requests <= 2 * 200
    assert store.most_in_flight >= 32
    before = store.requests
    assert dataset.count_rows("id >= 0") == 60_000 - 600
    assert store.requests == before  # all that was needed is known


def test_a_point_lookup_reads_the_zone_it_is_in(one_file: Path) -> None:
    store, dataset = opened(one_file)
    assert dataset.scan(filter="id = 12345").to_table()["id"].to_pylist() == [12345]
    assert store.requests <= 14
    assert store.bytes_read <= 1 << 20


def test_metrics_tell_requests_bytes_and_waiting(one_file: Path) -> None:
    store, dataset = opened(one_file)
    scan = dataset.scan(columns=["price", "day"], filter="flag < 10")
    scan.to_table()
    metrics = scan.metrics
    assert metrics is not None
    assert metrics.requests == store.requests
    assert metrics.bytes_read == store.bytes_read
    assert 0 <= metrics.bytes_over_read < store.bytes_read
    assert metrics.seconds["wait"] > 0
    text = dataset.scan(columns=["price"]).explain(analyze=True)
    assert "requests: " in text
    assert "over-read: " in text
    assert "wait " in text


def test_small_files_are_fetched_whole_and_read_together(
    many_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alone(*_: object) -> None:
        raise AssertionError("no file is opened alone")

    monkeypatch.setattr(FileReader, "__init__", alone)
    local = DatasetVersion.open(str(many_files)).scan(columns=["text", "price"], filter="flag = 3")
    expected = local.to_table()
    store, dataset = opened(many_files)
    scan = dataset.scan(columns=["text", "price"], filter="flag = 3")
    assert scan.to_table().equals(expected)
    assert store.requests == store.data_requests == 200
    assert store.bytes_read == size_of(many_files)
    assert scan.metrics is not None
    assert (scan.metrics.requests, scan.metrics.bytes_read) == (200, size_of(many_files))
    store.reset_counters()
    assert dataset.scan(columns=["id"]).to_table().num_rows == 60_000
    assert dataset.count_rows("flag = 3") == expected.num_rows
    assert DatasetVersion.open(store).scan(filter="flag = 3").to_table().num_rows == expected.num_rows  # type: ignore[arg-type]
    assert store.data_requests == 0  # they are known, whoever opens the dataset


def test_without_memory_to_keep_them_small_files_are_fetched_again(many_files: Path) -> None:
    limit = memory_limit()
    set_memory_limit(1 << 20)
    try:
        store, dataset = opened(many_files)
        for _ in range(2):
            store.reset_counters()
            assert dataset.scan(columns=["id"]).to_table()["id"].to_pylist() == list(range(60_000))
            assert 190 <= store.requests <= 200
    finally:
        set_memory_limit(limit)


@pytest.mark.parametrize("damage", ["missing", "cut", "not a file"])
def test_what_is_wrong_with_one_of_many_small_files_is_told(many_files: Path, damage: str) -> None:
    store, dataset = opened(many_files)
    fragment = dataset.snapshot.fragments[77]
    path = f"data/{fragment.files[0].path}"
    data = store.read(path)
    if damage == "missing":
        store.delete(path)
    else:
        store.put(path, data[:-50] if damage == "cut" else bytes(len(data)))
    with pytest.raises(CorruptFileError) as caught:
        dataset.scan(columns=["price"]).to_table()
    assert caught.value.place["fragment"] == fragment.id
    assert str(caught.value.place["path"]).endswith(path)


def test_small_files_that_a_scan_is_done_with_are_let_go(
    many_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go: list[int] = []
    evict = FragmentGroup.evict

    def counted(group: FragmentGroup) -> None:
        evict(group)
        let_go.append(group.rows)

    monkeypatch.setattr(FragmentGroup, "evict", counted)
    _, dataset = opened(many_files)
    batches = dataset.scan(columns=["price"], batch_size=6000, read_ahead=1 << 20).to_batches()
    assert sum(batch.num_rows for batch in batches) == 60_000
    assert sum(let_go) == 60_000


def test_looking_ahead_reads_no_rows(one_file: Path) -> None:
    store, dataset = opened(one_file)
    metrics = dataset.scan(columns=[], filter="amount < 500000000000").look_ahead()
    assert metrics.rows_left > ROWS // 2
    assert store.requests <= 3  # the footer, and zone maps
    assert store.bytes_read <= 256 << 10


def test_no_byte_of_a_whole_scan_is_asked_for_twice(one_file: Path) -> None:
    store, dataset = opened(one_file)
    dataset.scan(columns=["id", "price", "amount", "text"]).to_table()
    ranges = sorted(
        (offset, length or 0) for path, offset, length in store.ranges if path.startswith("data/")
    )
    twice = sum(max(0, offset + length - after) for (offset, length), (after, _) in pairwise(ranges))
    assert twice <= TAIL_SIZE  # a page may reach into what came with the footer
