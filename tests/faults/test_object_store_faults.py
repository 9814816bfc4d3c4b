"""Object stores that respond late, badly or never: correct results or a quick error, and nothing left."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import StorageAccessError, StorageUnavailableError
from lance_engine.io import Store, obstore_client, open_store
from lance_engine.io.object_upload import PART_BYTES
from lance_engine.write.dataset import write_dataset
from s3_proxy import Fault, Request, S3Proxy, s3_proxy

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": range(1000), "s": [f"s{i}" for i in range(1000)]})


@pytest.fixture
def proxy(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    # What takes seconds in earnest.
    monkeypatch.setattr(obstore_client, "_HASTY", (0.2, 0.2, 0.3))
    with s3_proxy(object_store.endpoint) as proxy:
        proxy.stall_seconds = 1.0
        yield proxy


@pytest.fixture
def options(object_store: ObjectStore, proxy: S3Proxy) -> dict[str, str]:
    # Clients are kept: the time-out makes this one another than those of other tests.
    return {**object_store.options, "aws_endpoint": proxy.endpoint, "request_timeout": "5s"}


@pytest.fixture
def store(object_store: ObjectStore, options: dict[str, str]) -> Store:
    return open_store(object_store.s3("t.lance"), options)


FAULTS: tuple[Fault, ...] = ("503", "reset", "truncate", "short", "stall", "lost")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_reads_are_repeated_until_all_bytes_are_there(store: Store, proxy: S3Proxy, fault: Fault) -> None:
    content = bytes(range(256)) * 100
    store.put("data/a", content)
    reads = (
        lambda: store.read("data/a") == content,
        lambda: store.read("data/a", 100, 5000) == content[100:5100],
        lambda: store.read("data/a", 100) == content[100:],
        lambda: store.read_tail("data/a", 64) == (content[-64:], len(content)),
        lambda: store.read_ranges("data/a", [(0, 300), (9000, 2)]) == [content[:300], content[9000:9002]],
    )
    # An answer that claims to be a whole file, and to be that short, cannot be told from the truth.
    for read in reads[fault == "short" :]:
        proxy.fail(fault, times=2, method="GET")
        assert read()
    if fault != "short":
        proxy.fail(fault, times=2)
        assert store.list("data") == ["data/a"]
        proxy.fail(fault, times=2)
        assert store.names("data") == ["a"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["503", "reset", "stall"])
def test_of_several_ranges_only_the_one_that_failed_is_requested_again(
    store: Store, proxy: S3Proxy, fault: Fault
) -> None:
    """If all were repeated, a different one would fail each time."""
    content = bytes(range(256)) * 100
    store.put("data/a", content)
    ranges = [(number * 1000, 100) for number in range(8)]
    proxy.fail(fault, times=1, method="GET")
    before = len(proxy.requests)
    found = store.read_ranges("data/a", ranges)
    assert [bytes(data) for data in found] == [content[begin : begin + 100] for begin, _ in ranges]
    assert len(proxy.requests) - before == 9


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", ["503", "reset", "stall", "lost"])
def test_a_dataset_is_written_once_whatever_is_lost(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy, fault: Fault
) -> None:
    uri = object_store.s3("t.lance")
    proxy.fail(fault, times=1, method="PUT", path="_versions")
    write_dataset(TABLE, uri, storage_options=options)
    for kind in ("data/", "_transactions", "_versions"):
        proxy.fail(fault, times=1, method="PUT", path=kind)
        write_dataset(TABLE, uri, "append", storage_options=options)
    ds = DatasetVersion.open(uri, storage_options=object_store.options)
    assert (ds.version, ds.count_rows()) == (4, 4000)
    names = object_store.client("s3").list_objects_v2(Bucket=object_store.bucket)["Contents"]
    kinds = [entry["Key"].split("/")[1] for entry in names]
    assert {kind: kinds.count(kind) for kind in kinds} == {"data": 4, "_transactions": 4, "_versions": 4}


def test_what_a_lost_answer_made_is_told_from_what_others_made(store: Store, proxy: S3Proxy) -> None:
    proxy.fail("lost", times=1, method="PUT")
    store.put_if_absent("_refs/tags/a.json", b"mine")
    proxy.fail("lost", times=1, method="PUT")
    with pytest.raises(FileExistsError):
        store.put_if_absent("_refs/tags/a.json", b"theirs")
    assert store.read("_refs/tags/a.json") == b"mine"


def _unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.parametrize("host", ["http://127.0.0.1:{port}", "http://no-such-host.invalid"])
def test_servers_that_are_not_there_are_told_of_soon(object_store: ObjectStore, host: str) -> None:
    uri = object_store.s3("t.lance")
    options = {**object_store.options, "aws_endpoint": host.format(port=_unused_port())}
    with pytest.raises(StorageUnavailableError) as caught:
        DatasetVersion.open(uri, storage_options=options)
    place = caught.value.place
    assert place["path"] == f"{uri}/_versions"
    assert place["operation"] == "list"
    assert place["attempts"] > 1
    assert float(place["elapsed"].split()[0]) < 5
    assert "refused" in caught.value.message or "unknown host" in caught.value.message
    assert "endpoint" in caught.value.remedy
    assert "test" not in str(caught.value).replace(uri, "")


def test_what_stays_busy_is_told_of_in_the_time_that_was_given(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy
) -> None:
    store = open_store(object_store.s3("t.lance"), {**options, "retry_timeout": "1s"})
    proxy.fail("503", times=1000)
    with pytest.raises(StorageUnavailableError, match="SlowDown: Please wait") as caught:
        store.put("a", b"")
    assert 2 <= caught.value.place["attempts"] == len(proxy.requests) < 10
    assert "retry_timeout" in caught.value.remedy


def test_refusals_are_not_repeated(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    store = open_store("s3://no-such-bucket/t.lance", options)
    with pytest.raises(FileNotFoundError):
        store.put("a", b"")
    assert len(proxy.requests) == 1
    proxy.fail("403", times=1)
    with pytest.raises(StorageAccessError, match="AccessDenied"):
        store.put("a", b"")
    assert len(proxy.requests) == 2


def _open_uploads(object_store: ObjectStore) -> list[object]:
    answer = object_store.client("s3").list_multipart_uploads(Bucket=object_store.bucket)
    return list(answer.get("Uploads", []))


def test_uploads_run_while_the_file_is_written(
    store: Store, proxy: S3Proxy, object_store: ObjectStore
) -> None:
    part = bytes(range(256)) * (PART_BYTES // 256)
    with store.create("data/a") as sink:
        for _ in range(8):
            sink.write(part)
        # Of eight parts at most four are on their way and two wait.
        sent = [request for request in proxy.requests if "partNumber" in request.path]
        assert sent
        sink.write(b"end")
        assert sink.tell() == 8 * PART_BYTES + 3
    assert store.size("data/a") == 8 * PART_BYTES + 3
    assert store.read("data/a", 3 * PART_BYTES - 1, 3) == b"\xff\x00\x01"
    assert store.read_tail("data/a", 3)[0] == b"end"
    assert 2 <= proxy.most_in_flight <= 4
    assert _open_uploads(object_store) == []


@pytest.mark.parametrize("fault", ["503", "reset", "lost"])
def test_parts_are_repeated(store: Store, proxy: S3Proxy, fault: Fault) -> None:
    proxy.fail(fault, times=2, method="PUT", path="partNumber")
    with store.create("data/a") as sink:
        sink.write(bytes(2 * PART_BYTES + 1))
    assert store.size("data/a") == 2 * PART_BYTES + 1


def test_an_aborted_write_leaves_no_parts(store: Store, object_store: ObjectStore) -> None:
    sink = store.create("data/a")
    sink.write(bytes(3 * PART_BYTES))
    sink.discard()
    sink = store.create("data/b")
    sink.write(bytes(3 * PART_BYTES))
    del sink  # nobody closed it
    assert _open_uploads(object_store) == []
    assert store.list("data") == []


def test_a_write_that_fails_in_the_middle_leaves_nothing(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy
) -> None:
    uri = object_store.s3("t.lance")
    numbers = pa.table({"a": pa.array(range(PART_BYTES // 4), pa.int64())})

    def batches() -> Iterator[pa.RecordBatch]:
        yield from numbers.to_batches()
        raise KeyError("no more")

    reader = pa.RecordBatchReader.from_batches(numbers.schema, batches())
    with pytest.raises(KeyError, match="no more"):
        write_dataset(reader, uri, storage_options=options)
    assert _open_uploads(object_store) == []
    assert object_store.client("s3").list_objects_v2(Bucket=object_store.bucket)["KeyCount"] == 0


def test_files_are_completed_while_the_next_are_written(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy
) -> None:
    uri = object_store.s3("t.lance")
    proxy.delay = 0.1
    write_dataset(TABLE, uri, storage_options=options, max_rows_per_file=100)
    assert 2 <= proxy.most_in_flight <= 4
    assert DatasetVersion.open(uri, storage_options=options).scan().to_table() == TABLE


@pytest.mark.parametrize("number", [1, 5, 10])
def test_a_file_that_cannot_be_completed_fails_the_write(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy, number: int
) -> None:
    uri = object_store.s3("t.lance")
    seen: list[str] = []

    def fault(request: Request) -> Fault | None:
        if request.method != "PUT":
            return None
        seen.append(request.path)
        return "403" if len(seen) == number else None

    proxy.fault = fault
    with pytest.raises(StorageAccessError, match="AccessDenied"):
        write_dataset(TABLE, uri, storage_options=options, max_rows_per_file=100)
    assert object_store.client("s3").list_objects_v2(Bucket=object_store.bucket)["KeyCount"] == 0


def test_an_upload_that_cannot_go_on_is_an_error(
    object_store: ObjectStore, options: dict[str, str], proxy: S3Proxy
) -> None:
    store = open_store(object_store.s3("t.lance"), {**options, "retry_timeout": "500ms"})
    proxy.fail("503", times=1000, path="partNumber")

    def write() -> None:
        with store.create("data/a") as sink:
            for _ in range(30):
                sink.write(bytes(PART_BYTES))

    with pytest.raises(StorageUnavailableError, match="SlowDown"):
        write()
    assert _open_uploads(object_store) == []
