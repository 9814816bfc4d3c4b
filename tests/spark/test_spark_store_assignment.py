"""INSERT into a Lance catalog converts values, or refuses them, as for Parquet tables of Spark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,  # three statements on each of two tables for every case
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
    ),
]

CASES = [
    ("x DECIMAL(5,2)", "SELECT 1.239"),
    ("x DECIMAL(5,2)", "SELECT 12345.6"),
    ("x DECIMAL(5,2)", "SELECT 1.005D"),
    ("x INT", "SELECT 3000000000L"),
    ("x INT", "SELECT 1.7D"),
    ("x TINYINT", "SELECT 300"),
    ("x INT", "SELECT '12'"),
    ("x INT", "SELECT DATE'2020-01-01'"),
    ("x FLOAT", "SELECT 1e40D"),
    ("x FLOAT", "SELECT 0.1D"),
    ("x STRING", "SELECT 5"),
    ("x BOOLEAN", "SELECT 1"),
    ("x TIMESTAMP", "SELECT TIMESTAMP_NTZ'2020-06-01 12:00:00'"),
    ("x TIMESTAMP_NTZ", "SELECT TIMESTAMP'2020-06-01 12:00:00'"),
    ("x TIMESTAMP", "SELECT DATE'2020-06-01'"),
    ("x DATE", "SELECT TIMESTAMP'2020-06-01 23:59:59'"),
    ("x TIMESTAMP", "SELECT '2020-06-01 12:00:00'"),
    ("x TIMESTAMP", "SELECT TIMESTAMP'1582-10-04 00:00:00'"),
    ("x DATE", "SELECT DATE'0001-01-01'"),
    ("x INTERVAL DAY TO SECOND", "SELECT INTERVAL '1' HOUR"),
    ("x STRUCT<a: INT, b: STRING>", "SELECT named_struct('b', 'x', 'a', 1)"),
    ("x STRUCT<a: INT, b: STRING>", "SELECT named_struct('A', 1, 'B', 'x')"),
    ("x STRUCT<a: INT, b: STRING>", "SELECT named_struct('a', 1)"),
    ("x STRUCT<a: INT>", "SELECT named_struct('a', 1, 'b', 2)"),
    ("x STRUCT<a: TINYINT>", "SELECT named_struct('a', 1000)"),
    ("x ARRAY<INT>", "SELECT array(1L, 3000000000L)"),
    ("x MAP<STRING,INT>", "SELECT map('a', 5L)"),
    ("x ARRAY<STRUCT<a: INT, b: INT>>", "SELECT array(named_struct('b', 1, 'a', 2))"),
    ("i INT, s STRING", "SELECT 'x', 5"),
    ("i INT, s STRING", "SELECT 1"),
    ("x INT", "SELECT 1, 2"),
    ("x BINARY", "SELECT 'abc'"),
    ("x STRING", "SELECT X'41'"),
    ("i INT, s STRING", "BY NAME SELECT 'x' AS S, 1 AS I"),
    ("i INT, s STRING", "BY NAME SELECT 1 AS i"),
    ("i INT", "BY NAME SELECT 1 AS i, 2 AS j"),
    ("x STRUCT<a: INT, b: STRING>", "BY NAME SELECT named_struct('b', 'x', 'a', 1) AS x"),
    ("x STRUCT<a: INT, b: STRING>", "BY NAME SELECT named_struct('a', 1) AS x"),
]


@pytest.mark.parametrize(("columns", "rows"), CASES)
def test_values_are_converted_as_in_parquet(
    spark: SparkSession, tmp_path: Path, columns: str, rows: str
) -> None:
    catalog = f"assigned{abs(hash(str(tmp_path)))}"
    spark.conf.set(f"spark.sql.catalog.{catalog}", "lancesql.spark.LanceCatalog")
    spark.conf.set(f"spark.sql.catalog.{catalog}.path", str(tmp_path))
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        lance = outcome(spark, f"{catalog}.t", columns, "", rows)
        parquet = outcome(spark, "assigned_parquet", columns, f"USING parquet LOCATION '{tmp_path}/p'", rows)
    finally:
        spark.sql("DROP TABLE IF EXISTS assigned_parquet")
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert lance == parquet


def outcome(spark: SparkSession, table: str, columns: str, storage: str, rows: str) -> tuple[Any, ...]:
    """The types and rows after an INSERT, and its error."""
    spark.sql(f"CREATE TABLE {table} ({columns}) {storage}")
    refusal = None
    try:
        spark.sql(f"INSERT INTO {table} {rows}")
    except PySparkException as error:
        refusal = (type(error).__name__, error.getCondition())
    frame = spark.table(table)
    return refusal, frame.dtypes, [repr(row) for row in frame.collect()]
