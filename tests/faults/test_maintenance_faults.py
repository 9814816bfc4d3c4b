"""Deleting, compacting, optimizing indices and cleaning up while an object store fails.

Each operation commits once, the rows are right, and nothing is left behind.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.index.listing import all_segments
from lance_engine.io import obstore_client, open_store, retries
from lance_engine.write.dataset import write_dataset
from s3_proxy import Fault, Request, S3Proxy, s3_proxy

if TYPE_CHECKING:
    from conftest import ObjectStore

PARTS, ROWS = 4, 300
# Every so many requests one is answered badly; fewer where that takes long.
EVERY: dict[Fault, int] = {"503": 4, "reset": 4, "truncate": 4, "lost": 4, "stall": 12}
QUICK = ("503", "lost")


@pytest.fixture
def proxy(object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Proxy]:
    # What takes seconds in earnest.
    monkeypatch.setattr(obstore_client, "_HASTY", (0.5, 1.0, 2.0))
    monkeypatch.setattr(retries, "_FIRST_PAUSE", 0.01)
    with s3_proxy(object_store.endpoint) as proxy:
        proxy.stall_seconds = 1.0
        yield proxy


def rows(part: int) -> pa.Table:
    return pa.table({"id": range(part * ROWS, (part + 1) * ROWS), "part": [part] * ROWS})


def fail_often(proxy: S3Proxy, fault: Fault) -> None:
    numbers = count()

    def next_fault(request: Request) -> Fault | None:
        if fault == "truncate" and request.method != "GET":
            return None
        return fault if next(numbers) % EVERY[fault] == 1 else None

    proxy.fault = next_fault


@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if fault in QUICK else pytest.mark.slow) for fault in EVERY]
)
def test_maintenance_under_faults(object_store: ObjectStore, proxy: S3Proxy, fault: Fault) -> None:
    options = {**object_store.options, "aws_endpoint": proxy.endpoint, "request_timeout": "4s"}
    uri = object_store.s3("t.lance")
    write_dataset(rows(0), uri, storage_options=options)
    dataset = DatasetVersion.open(uri, storage_options=options).create_index("id", "btree")
    for part in range(1, PARTS):
        write_dataset(rows(part), uri, mode="append", storage_options=options)
    before = DatasetVersion.open(uri, storage_options=options).version

    fail_often(proxy, fault)
    dataset = DatasetVersion.open(uri, storage_options=options)
    dataset = dataset.delete("id % 10 = 3")
    dataset = dataset.compact()
    dataset = dataset.optimize_indices()
    versions = dataset.version
    report = dataset.cleanup(datetime.timedelta(0), delete_unverified=True)
    found = dataset.scan(filter="id >= 290 AND id < 310").to_table()
    proxy.fault = lambda request: None

    expected = [number for number in range(PARTS * ROWS) if number % 10 != 3]
    assert sorted(found["id"].to_pylist()) == [number for number in expected if 290 <= number < 310]
    again = DatasetVersion.open(uri, storage_options=options)
    assert sorted(again.scan().to_table()["id"].to_pylist()) == expected
    # Compaction may reserve numbers of fragments in a version of its own.
    assert before + 3 <= again.version == versions <= before + 4
    assert len(report.versions) >= PARTS
    # What is there now is what the one version that is left needs.
    fragments = again.snapshot.fragments
    assert len(fragments) < PARTS
    store = open_store(uri, object_store.options)
    assert store.list("data") == sorted(f"data/{file.path}" for part in fragments for file in part.files)
    deletions = [part.deletion_file for part in fragments if part.deletion_file is not None]
    assert len(store.list("_deletions")) == len(deletions)
    segments = {str(segment.uuid) for segment in all_segments(again.snapshot)}
    assert {path.split("/")[1] for path in store.list("_indices")} == segments
    assert len(store.list("_versions")) == 1
    uploads = object_store.client("s3").list_multipart_uploads(Bucket=object_store.bucket)
    assert not uploads.get("Uploads")
