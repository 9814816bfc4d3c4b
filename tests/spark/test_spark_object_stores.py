"""Spark on datasets in object stores: tasks get the options, and nothing else of the planning process."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING

from lance_engine.dataset import DatasetVersion
from lance_engine.table.versions import open_snapshot
from s3_proxy import s3_proxy

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
        # A request that a task repeats is no reason for Spark to repeat the task.
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
