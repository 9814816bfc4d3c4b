"""Queries that read only the columns and rows they need return the same as those that read everything."""

from __future__ import annotations

import datetime
import logging
import re

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lance_sql
import lance_sql.spark

DAY = datetime.date(2024, 1, 1)
ROWS = 3_000


@pytest.fixture(autouse=True)
def unplanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables as Spark plans them where the planner in the JVM is missing."""
    monkeypatch.setattr("lance_sql.spark.tables.FORMAT", "lance_python")


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("narrow") / "my sales.lance")
    numbers = range(ROWS)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "u": pa.array([i % 200 for i in numbers], pa.uint8()),
            "day": [DAY + datetime.timedelta(i // 100) for i in numbers],
            "price": [None if i % 7 == 0 else (float("nan") if i % 11 == 0 else i / 4) for i in numbers],
            "name": [None if i % 5 == 0 else f"row {i % 40}" for i in numbers],
            "at": pa.array([i * 1_000_000 for i in numbers], pa.timestamp("us", "UTC")),
            "place": [{"city": f"c{i % 3}", "zip": i} for i in numbers],
        }
    )
    lance_sql.write(table.slice(0, 2000), path, max_rows_per_file=1000, zone_rows=100)
    lance_sql.write(table.slice(2000), path, mode="append", zone_rows=100)
    return path


def relations(frame: DataFrame) -> list[tuple[list[str], str]]:
    """For each table that is read its columns and its filter."""
    found = []

    def visit(plan):  # type: ignore[no-untyped-def]
        children = plan.children()
        if not children.size() and plan.getClass().getSimpleName() == "DataSourceV2Relation":
            names = re.findall(r'"name":"(\w+)"', plan.schema().json())
            found.append((names, plan.options().getOrDefault("filter", "")))
        for position in range(children.size()):
            visit(children.apply(position))

    visit(frame._jdf.queryExecution().analyzed())
    return found


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


#: Those that run each time; a query costs most of a second.
QUICK = [QUERIES[number] for number in (1, 4, 8, 10, 12, 13)]


@pytest.mark.parametrize(
    "queries", [QUICK, pytest.param(QUERIES, marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_answers_stay_the_same(spark: SparkSession, sales: str, queries: list[str]) -> None:
    lance_sql.spark.table(spark, sales).createOrReplaceTempView("t")
    for query in queries:
        plain = spark.sql(query)
        narrowed = lance_sql.spark.narrow(plain)
        assert narrowed.schema == plain.schema, query
        # A NaN equals itself as text only.
        assert repr(narrowed.collect()) == repr(plain.collect()), query


def test_what_is_read(spark: SparkSession, sales: str) -> None:
    frame = lance_sql.spark.table(spark, sales)
    last = frame.where("day >= '2024-01-25' AND upper(name) = 'ROW 1'").groupBy("u").sum("id")
    ((names, filter),) = relations(lance_sql.spark.narrow(last))
    assert names == ["id", "u", "day", "name"]
    assert "day >= DATE '2024-01-25'" in filter
    assert "ROW" not in filter
    assert relations(lance_sql.spark.narrow(frame.selectExpr("count(*)"))) == [(["u"], "")]
    first, second = frame.where("id < 3"), frame.where("id > 2990")
    both = relations(lance_sql.spark.narrow(first.select("id").union(second.select("u"))))
    assert sorted(names for names, _ in both) == [["id"], ["id", "u"]]


def test_what_was_pruned_is_logged(spark: SparkSession, sales: str, caplog: pytest.LogCaptureFixture) -> None:
    query = f"SELECT id FROM lance.`{sales}` WHERE id >= 2950"
    with caplog.at_level(logging.INFO, "lance_sql.spark"):
        narrowed = lance_sql.spark.sql(spark, query)
    (message,) = caplog.messages
    assert (
        "version 2: reads ['id'] where (id IS NOT NULL AND id >= 2950): 1 task for 100 of 3,000 rows"
        in message
    )
    assert message.endswith("in 1 of 3 fragments")

    collects = "spark.sql.pyspark.worker.logging.enabled"
    spark.conf.set(collects, "true")
    try:
        assert narrowed.count() == 50
        collected = spark.tvf.python_worker_logs().where("logger = 'lance_sql.spark'").select("msg").collect()
    finally:
        spark.conf.unset(collects)
    messages = [row.msg for row in collected]
    assert any("1 task for 100 of 3,000 rows" in message for message in messages)
    read = next(message for message in messages if "stored" in message)
    assert "50 rows from 100 of 100 stored, 1 of 1 fragments, 1 of 1 zones" in read


def test_filters_of_one_query_leave_others_alone(spark: SparkSession, sales: str) -> None:
    frame = lance_sql.spark.table(spark, sales)
    few = lance_sql.spark.narrow(frame.where("id < 3"))
    assert (few.count(), frame.count(), few.count(), frame.where("id > 10").count()) == (
        3,
        ROWS,
        3,
        ROWS - 11,
    )


def test_paths_and_versions_in_the_text(spark: SparkSession, sales: str) -> None:
    query = f"SELECT count(*), max(id) FROM lance.`{sales}`"
    assert lance_sql.spark.sql(spark, query).first()[:] == (ROWS, ROWS - 1)
    assert lance_sql.spark.sql(spark, query + " VERSION AS OF 1 AS old").first()[:] == (2000, 1999)
    lance_sql.open(sales).tags.create("first", 1)
    old = f"SELECT max(id) FROM lance.`{sales}` FOR VERSION AS OF 'first'"
    tagged = f"SELECT ({old}) - max(id) FROM lance.`{sales}`"
    assert lance_sql.spark.sql(spark, tagged).first()[0] == -1000
    moment = datetime.datetime.now(datetime.UTC).isoformat()
    assert lance_sql.spark.sql(spark, query + f" TIMESTAMP AS OF '{moment}'").first()[0] == ROWS
    assert lance_sql.spark.sql(spark, "SELECT 'lance.`x`' AS s").first().s == "lance.`x`"
    braces = lance_sql.spark.sql(spark, f"SELECT '{{x}}' AS s FROM lance.`{sales}` LIMIT 1")
    assert braces.first().s == "{x}"
    narrowed = lance_sql.spark.sql(spark, f"SELECT id FROM lance.`{sales}` WHERE id > 2990")
    assert relations(narrowed) == [(["id"], "(id IS NOT NULL AND id > 2990)")]
    assert not [view.name for view in spark.catalog.listTables() if view.name.startswith("lance_")]
