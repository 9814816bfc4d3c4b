"""Spark on datasets in object stores: tasks get the options, and nothing else of the planning process."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.file.lasting import LASTING
from lance_engine.table.versions import open_snapshot
from lance_engine.write.dataset import write_dataset
from s3_proxy import Request, s3_proxy

from lance_sql.spark.source import LanceDataSource

if TYPE_CHECKING:
    from conftest import ObjectStore
    from pyspark.sql import SparkSession


def test_tasks_write_and_read_with_the_options(spark: SparkSession, object_store: ObjectStore) -> None:
    uri = object_store.s3("t.lance")
    with s3_proxy(object_store.endpoint) as proxy:
        options = {**object_store.options, "aws_endpoint": proxy.endpoint}
        given = {"storage_options": json.dumps(options)}
        frame = spark.range(0, 1000, 1, 3).selectExpr("id", "concat('s', id) AS s")
        frame.write.format("lance").options(**given).mode("append").save(uri)
        uploads = [
            request for request in proxy.requests if request.method == "PUT" and "/data/" in request.path
        ]
        assert len(uploads) == 3
        # Whoever plans has used the store: tasks begin with clients of their own.
        assert DatasetVersion.open(uri, storage_options=options).count_rows() == 1000
        # A request that a task repeats does not make Spark repeat the task.
        proxy.fail("503", times=2, method="GET", path="/data/")
        read = spark.read.format("lance").options(**given).load(uri).where("id >= 990").select("s")
        assert sorted(row.s for row in read.collect()) == [f"s{number}" for number in range(990, 1000)]


def test_snapshots_and_their_stores_are_pickled(object_store: ObjectStore, spark: SparkSession) -> None:
    uri = object_store.s3("t.lance")
    given = {"storage_options": json.dumps(object_store.options)}
    spark.range(10).write.format("lance").options(**given).mode("append").save(uri)
    snapshot = open_snapshot(uri, storage_options=object_store.options)
    store = pickle.loads(pickle.dumps(snapshot.store))
    assert store.list("_versions") == snapshot.store.list("_versions")


def length_of(request: Request) -> int:
    """How many bytes of a data file are requested, 0 if none are."""
    if request.method != "GET" or "/data/" not in request.path:
        return 0
    first, last = str(request.range).removeprefix("bytes=").split("-")
    return int(last) - int(first) + 1


def test_a_task_requests_each_byte_once_and_many_ranges_together(object_store: ObjectStore) -> None:
    """What a task reads arrives as fast as several requests in flight can bring it."""
    uri = object_store.s3("t.lance")
    columns, rows = 4, 1_000_000
    random = np.random.default_rng(3)
    table = pa.table({f"c{column}": random.integers(0, 1 << 62, rows) for column in range(columns)})
    with s3_proxy(object_store.endpoint) as proxy:
        # Nothing is requested again while it is held.
        waiting = {"request_timeout": "200s", "retry_timeout": "400s"}
        options = {**object_store.options, **waiting, "aws_endpoint": proxy.endpoint}
        write_dataset(table, uri, storage_options=options)
        source = LanceDataSource({"path": uri, "storage_options": json.dumps(options), "partitions": "1"})
        reader = source.reader(source.schema())
        (partition,) = reader.partitions()
        # As it arrives in a worker, which has read nothing yet.
        reader, partition = pickle.loads(pickle.dumps((reader, partition)))
        LASTING.clear()
        proxy.reset()

        def is_large(request: Request) -> bool:
            return length_of(request) > 1 << 20  # no footer: that is alone

        with proxy.gather(columns, is_large) as gathering:
            read = sum(batch.num_rows for batch in reader.read(partition))
        lengths = [length for request in proxy.requests if (length := length_of(request))]
    assert read == rows
    assert gathering.most >= columns
    assert len(lengths) <= 5 * columns
    assert sum(lengths) < 1.05 * columns * rows * 8
