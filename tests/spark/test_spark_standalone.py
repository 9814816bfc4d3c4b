"""A standalone master and two workers, whose executors only share a bucket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pytest
from standalone_cluster import standalone_cluster

import lance_sql

if TYPE_CHECKING:
    from conftest import ObjectStore

PROGRAM = """
import json, sys
from benchmarks.spark import session
import lance_sql.spark

master, uri, options = sys.argv[1:]
given = {"storage_options": options}
spark = session(master)
try:
    hosts = spark.sparkContext.parallelize(range(2), 2).map(
        lambda _: __import__("time").sleep(2) or __import__("os").getcwd()
    ).collect()
    rows = spark.range(0, 4000, 1, 4).selectExpr("id", "id % 7 AS g", "concat('s', id) AS s")
    rows.write.format("lance").options(**given).save(uri)
    location = {"storage_options": json.loads(options)}
    lance_sql.spark.build_index(spark, uri, "id", location=location)
    lance_sql.spark.delete(spark, uri, "g = 3", **location)
    lance_sql.spark.update(spark, uri, {"g": "g + 100"}, "id < 10", **location)
    lance_sql.spark.compact(spark, uri, **location)
    frame = spark.read.format("lance").options(**given).load(uri)
    sums = frame.where("id >= 5").selectExpr("count(*)", "sum(id)", "sum(g)", "count(distinct s)").first()
    print(json.dumps({"folders": len(set(hosts)), "sums": list(sums)}))
finally:
    spark.stop()
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("spark")  # which says why there is no Spark
def test_executors_that_only_share_a_bucket(object_store: ObjectStore, tmp_path: Path) -> None:
    uri = object_store.s3("t.lance")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with standalone_cluster(tmp_path) as cluster:
        done = subprocess.run(
            [sys.executable, str(program), cluster.master, uri, json.dumps(object_store.options)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    kept = {i: i % 7 + 100 * (i < 10) for i in range(4000) if i % 7 != 3}
    asked = [i for i in kept if i >= 5]
    assert found["folders"] == 2
    assert found["sums"] == [len(asked), sum(asked), sum(kept[i] for i in asked), len(asked)]
    table = lance_sql.open(uri, storage_options=object_store.options).scan().to_table()
    assert dict(zip(table["id"].to_pylist(), table["g"].to_pylist(), strict=True)) == kept
    assert lance.dataset(uri, storage_options=object_store.options).count_rows() == len(kept)
