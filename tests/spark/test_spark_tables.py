"""Tables by path: in the text of queries, with a version, and what their tasks log."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark

ROWS = 3_000


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two versions, of 2,000 and 3,000 rows."""
    path = str(tmp_path_factory.mktemp("tables") / "my numbers.lance")
    table = pa.table({"id": pa.array(range(ROWS), pa.int64())})
    lance_sql.write(table.slice(0, 2000), path, max_rows_per_file=1000, zone_rows=100)
    lance_sql.write(table.slice(2000), path, mode="append", zone_rows=100)
    return path


def test_paths_and_versions_in_the_text(spark: SparkSession, numbers: str) -> None:
    query = f"SELECT count(*), max(id) FROM lance.`{numbers}`"
    assert lance_sql.spark.sql(spark, query).first()[:] == (ROWS, ROWS - 1)
    assert lance_sql.spark.sql(spark, query + " VERSION AS OF 1 AS old").first()[:] == (2000, 1999)
    lance_sql.open(numbers).tags.create("first", 1)
    old = f"SELECT max(id) FROM lance.`{numbers}` FOR VERSION AS OF 'first'"
    tagged = f"SELECT ({old}) - max(id) FROM lance.`{numbers}`"
    assert lance_sql.spark.sql(spark, tagged).first()[0] == -1000
    moment = datetime.datetime.now(datetime.UTC).isoformat()
    assert lance_sql.spark.sql(spark, query + f" TIMESTAMP AS OF '{moment}'").first()[0] == ROWS
    assert lance_sql.spark.sql(spark, "SELECT 'lance.`x`' AS s").first().s == "lance.`x`"
    braces = lance_sql.spark.sql(spark, f"SELECT '{{x}}' AS s FROM lance.`{numbers}` LIMIT 1")
    assert braces.first().s == "{x}"
    few = lance_sql.spark.sql(spark, f"SELECT id FROM lance.`{numbers}` WHERE id > 2990")
    assert few.count() == 9
    assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("lance_")]


def test_what_was_read_is_logged(spark: SparkSession, numbers: str) -> None:
    collects = "spark.sql.pyspark.worker.logging.enabled"
    spark.conf.set(collects, "true")
    try:
        frame = spark.read.format("lance_python").option("filter", "id >= 2950").load(numbers)
        assert frame.count() == 50
        collected = spark.tvf.python_worker_logs().where("logger = 'lance_sql.spark'").select("msg").collect()
    finally:
        spark.conf.unset(collects)
    messages = [row.msg for row in collected]
    assert any("1 task for 100 of 3,000 rows in 1 of 3 fragments" in message for message in messages)
    read = next(message for message in messages if "stored" in message)
    assert "50 rows from 100 of 100 stored, 1 of 1 fragments, 1 of 1 zones" in read
