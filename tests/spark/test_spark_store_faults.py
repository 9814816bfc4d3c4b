"""Spark tasks with an object store that fails: correct rows, one commit, no leftover files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.write.dataset import write_dataset
from s3_proxy import Fault, Request, S3Proxy, s3_proxy

if TYPE_CHECKING:
    from conftest import ObjectStore
    from pyspark.sql import SparkSession

ROWS, TASKS = 3000, 3
FAULTS: tuple[Fault, ...] = ("503", "reset", "lost", "truncate", "stall")


def first_of_each(proxy: S3Proxy, applies: Callable[[Request], bool]) -> dict[str, Fault]:
    """Answer the first request for each file badly, each in another way; returns these ways."""
    faults, given = itertools.cycle(FAULTS), dict[str, Fault]()

    def next_fault(request: Request) -> Fault | None:
        path = request.path.partition("?")[0]
        if path in given or not applies(request):
            return None
        given[path] = next(faults)
        return given[path]

    proxy.fault = next_fault
    return given


def files(store: ObjectStore, folder: str) -> set[str]:
    answer = store.client("s3").list_objects_v2(Bucket=store.bucket, Prefix=f"t.lance/{folder}/")
    return {found["Key"].rpartition("/")[2] for found in answer.get("Contents", [])}


@pytest.mark.slow
def test_tasks_outlast_faults(spark: SparkSession, object_store: ObjectStore) -> None:
    uri = object_store.s3("t.lance")
    first = pa.table({"id": range(ROWS), "s": [f"s{number}" for number in range(ROWS)]})
    write_dataset(first, uri, max_rows_per_file=ROWS // 2, storage_options=object_store.options)
    with s3_proxy(object_store.endpoint) as proxy:
        proxy.stall_seconds = 1.0
        given = {"storage_options": json.dumps({**object_store.options, "aws_endpoint": proxy.endpoint})}
        harmed = first_of_each(proxy, lambda request: request.method in ("PUT", "POST"))
        frame = spark.range(ROWS, 2 * ROWS, 1, TASKS).selectExpr("id", "concat('s', id) AS s")
        frame.write.format("lance").options(**given).mode("append").save(uri)
        assert sum("/data/" in path for path in harmed) >= TASKS
        assert any("/_versions/" in path for path in harmed)

        written = DatasetVersion.open(uri, storage_options=object_store.options)
        assert written.version == 2
        assert written.count_rows() == 2 * ROWS
        named = {file.path for fragment in written.snapshot.fragments for file in fragment.files}
        assert files(object_store, "data") == named
        assert len(files(object_store, "_versions")) == 2
        uploads = object_store.client("s3").list_multipart_uploads(Bucket=object_store.bucket)
        assert not uploads.get("Uploads")

        harmed = first_of_each(proxy, lambda request: request.method == "GET" and "/data/" in request.path)
        read = spark.read.format("lance").options(**given).load(uri).where("id % 2 = 1").select("id", "s")
        found = sorted((row.id, row.s) for row in read.collect())
        assert len(harmed) == 2 + TASKS
        assert found == [(number, f"s{number}") for number in range(1, 2 * ROWS, 2)]
