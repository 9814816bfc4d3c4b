"""The planner in the JVM: what Spark's plans show, and that results are the same without it."""

from __future__ import annotations

import datetime
import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lance_sql
import lance_sql.spark
from lance_sql.spark.planner import planner_jar

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)"
)

ROWS = 30_000

QUERIES = [
    "SELECT count(*) FROM t",
    "SELECT sum(price), count(name) FROM t WHERE day >= DATE '2024-01-10' AND day < '2024-01-20'",
    "SELECT id FROM t WHERE price > 500 ORDER BY id",
    "SELECT id, price FROM t WHERE NOT (price <= 100) AND name LIKE 'row 1%' ORDER BY id",
    "SELECT id FROM t WHERE name IN ('row 1', 'row 2') OR id < 5 ORDER BY id",
    "SELECT id FROM t WHERE id IN (1,2,3,4,5,6,7,8,9,10,11,12,13) ORDER BY id",
    "SELECT id FROM t WHERE id NOT IN (1,2,3,4,5,6,7,8,9,10,11,12,13) AND id < 20 ORDER BY id",
    "SELECT id FROM t WHERE u = 199 AND at < TIMESTAMP '1970-01-01 00:10:00' ORDER BY id",
    "SELECT place.zip FROM t WHERE place.city = 'c1' AND place.zip < 10 ORDER BY 1",
    "SELECT name, count(*) FROM t GROUP BY name HAVING count(*) > 60 ORDER BY name NULLS FIRST",
    "SELECT a.id, b.name FROM t a JOIN t b ON a.id = b.id + 1 WHERE a.day = '2024-01-05' ORDER BY a.id",
    "SELECT id FROM t WHERE id < 3 UNION ALL SELECT u FROM t WHERE id >= 2997 ORDER BY 1",
    "WITH w AS (SELECT id, day FROM t) SELECT x.id FROM w x JOIN w y ON x.id = y.id "
    "WHERE x.day = '2024-01-02' AND y.id % 2 = 0 ORDER BY 1",
    "SELECT id FROM t WHERE price > (SELECT avg(price) + 600 FROM t WHERE price < 700) ORDER BY id",
    "SELECT id FROM t WHERE id IN (SELECT u FROM t WHERE id < 4) ORDER BY id",
    "SELECT id FROM t WHERE price IS NULL AND name IS NOT NULL AND id < 60 ORDER BY id",
    "SELECT id FROM t WHERE name <=> NULL AND id > 2980 ORDER BY id",
    "SELECT * FROM t WHERE id = 77",
    "SELECT DISTINCT u FROM t WHERE 100 < u ORDER BY u LIMIT 5",
    "SELECT id, row_number() OVER (PARTITION BY u ORDER BY id) AS n FROM t WHERE u < 2 ORDER BY id",
    "SELECT * FROM (SELECT id FROM t EXCEPT SELECT u FROM t) WHERE id < 210 ORDER BY id",
]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    """30 days of 1,000 rows; x has nulls, NaN and both zeros."""
    path = str(tmp_path_factory.mktemp("planner") / "days.lance")
    special = [None, float("nan"), 0.0, -0.0, 1.5]
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=i // 1000) for i in range(ROWS)],
            "x": pa.array([special[i % 5] for i in range(ROWS)], pa.float64()),
            "text": [f"text {i % 17}" for i in range(ROWS)],
            "nested": [{"a": i, "b": {"c": str(i), "d": i % 3}} for i in range(ROWS)],
            "items": [[{"k": i, "v": str(i)}] for i in range(ROWS)],
        }
    )
    lance_sql.write(table, path, max_rows_per_file=10_000)
    return path


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("planner") / "my sales.lance")
    numbers = range(3_000)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "u": pa.array([i % 200 for i in numbers], pa.uint8()),
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(i // 100) for i in numbers],
            "price": [None if i % 7 == 0 else (float("nan") if i % 11 == 0 else i / 4) for i in numbers],
            "name": [None if i % 5 == 0 else f"row {i % 40}" for i in numbers],
            "at": pa.array([i * 1_000_000 for i in numbers], pa.timestamp("us", "UTC")),
            "place": [{"city": f"c{i % 3}", "zip": i} for i in numbers],
        }
    )
    lance_sql.write(table.slice(0, 2000), path, max_rows_per_file=1000, zone_rows=100)
    lance_sql.write(table.slice(2000), path, mode="append", zone_rows=100)
    return path


def load(spark: SparkSession, path: str, form: str = "lance") -> DataFrame:
    return spark.read.format(form).load(path)


def plan(frame: DataFrame) -> str:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(mode="formatted")
    return text.getvalue()


def test_the_jar_is_built() -> None:
    assert planner_jar() is not None


def test_plans_show_columns_filters_and_limits(spark: SparkSession, days: str) -> None:
    month = load(spark, days).select("id").where("day = DATE'2024-01-03' AND text = 'text 3' AND x > 1")
    shown = plan(month)
    assert "version 1, ReadSchema: struct<id:bigint,x:double>" in shown
    for pushed in ("EqualTo(day,2024-01-03)", "EqualTo(text,text 3)", "GreaterThan(x,1.0)"):
        assert pushed in shown
    # Spark keeps the condition on the column whose NaN it orders by itself, and no other.
    assert "Condition : (isnotnull(x#" in shown
    assert "PushedLimit: 7" in plan(load(spark, days).limit(7))
    assert load(spark, days).limit(7).count() == 7


def test_fields_of_structs_are_pruned(spark: SparkSession, days: str) -> None:
    frame = load(spark, days).selectExpr("nested.b.d AS d", "items.v AS v").where("id = 5")
    assert "ReadSchema: struct<nested:struct<b:struct<d:int>>" in plan(frame).replace("bigint", "int")
    assert frame.collect() == [(2, ["5"])]


def test_rows_are_counted_by_the_manifest(spark: SparkSession, days: str) -> None:
    counted = load(spark, days).groupBy().count()
    assert "LocalTableScan" in plan(counted)
    assert counted.first()[0] == ROWS
    filtered = load(spark, days).where("id < 10").groupBy().count()
    assert "LocalTableScan" not in plan(filtered)
    assert filtered.first()[0] == 10
    optioned = spark.read.format("lance").option("filter", "id < 10").load(days)
    assert optioned.count() == 10


def test_small_tables_are_broadcast(spark: SparkSession, days: str, tmp_path: Path) -> None:
    frame = load(spark, days)
    assert "BroadcastHashJoin" in plan(frame.join(frame.alias("other"), "id"))
    unplanned = load(spark, days, "lance_python")
    assert "BroadcastHashJoin" not in plan(unplanned.join(unplanned.alias("other"), "id"))


@pytest.mark.parametrize(
    "condition",
    [
        "x > 1",
        "x >= double('NaN')",
        "NOT (x < 1)",
        "x = 0.0",
        "x <=> NULL",
        "x IN (0.0, double('NaN'))",
        "id % 2 = 0 AND day >= '2024-01-28'",
        "text LIKE 'text 1%' AND text NOT LIKE '%2'",
        "id > 2147483648 OR id IN (1, 2, NULL)",
        "nested.a < 3",
        "nested.b.c = '7' AND id < 10",
        "day BETWEEN '2024-01-02' AND '2024-01-03' AND (x IS NULL OR NOT id = 1003)",
    ],
)
def test_filters_keep_what_spark_keeps(spark: SparkSession, days: str, condition: str) -> None:
    shape = "count(*)", "sum(id)", "count(x)", "max(text)"
    planned, unplanned = (
        load(spark, days, form).where(condition).selectExpr(*shape).first()
        for form in ("lance", "lance_python")
    )
    assert planned == unplanned


@pytest.mark.parametrize(
    "queries", [QUERIES[::3], pytest.param(QUERIES, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_queries_agree(spark: SparkSession, sales: str, queries: list[str]) -> None:
    for query in queries:
        answers = []
        for form in ("lance", "lance_python"):
            load(spark, sales, form).createOrReplaceTempView("t")
            answers.append(spark.sql(query).collect())
        assert repr(answers[0]) == repr(answers[1]), query


def test_a_frame_reads_the_version_it_was_loaded_at(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    frame = load(spark, path)
    lance_sql.write(pa.table({"a": [3]}), path, mode="append")
    assert (frame.count(), frame.where("a > 0").count()) == (2, 2)
    assert load(spark, path).count() == 3


def test_a_view_sees_what_was_inserted_into_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2]}), path)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW inserted USING lance OPTIONS (path '{path}')")
    spark.sql("INSERT INTO inserted VALUES (5L)")
    assert spark.sql("SELECT count(*), max(a) FROM inserted").first()[:] == (3, 5)


def test_row_ids_are_metadata_columns(spark: SparkSession, days: str) -> None:
    frame = load(spark, days)
    assert "_rowid" not in frame.columns
    assert frame.select("_rowid", "id").where("id = 10001").collect() == [((1 << 32) + 1, 10_001)]
