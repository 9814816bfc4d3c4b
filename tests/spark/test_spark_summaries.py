"""``min``, ``max`` and ``count`` of columns from zone maps, where these are exact."""

from __future__ import annotations

import datetime
import io
from contextlib import redirect_stdout
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lance_sql
from lance_sql.spark.planner import planner_jar

pytestmark = pytest.mark.skipif(planner_jar() is None, reason="the build had no JDK")

ROWS = 5_000
NAMES = ["flag", "small", "short", "number", "long", "day", "price", "text"]


def values(rows: int) -> pa.Table:
    """Columns whose values are known exactly, with nulls and negative numbers."""
    some = [None if i % 7 == 3 else i - 1000 for i in range(rows)]
    return pa.table(
        {
            "key": range(rows),
            "flag": pa.array([None if i is None else i > 0 for i in some]),
            "small": pa.array([None if i is None else i % 100 for i in some], pa.int8()),
            "short": pa.array(some, pa.int16()),
            "number": pa.array(some, pa.int32()),
            "long": pa.array([None if i is None else i << 40 for i in some], pa.int64()),
            "day": pa.array([None if i is None else datetime.date(1970, 1, 1 + i % 28) for i in some]),
            "price": pa.array([None if i is None else Decimal(i) / 100 for i in some], pa.decimal128(12, 2)),
            "text": pa.array([None if i is None else f"t\u00e9xt {i:05}" for i in some]),
            "ratio": pa.array([None if i is None else i / 3 for i in some]),
            "long_text": [f"{'x' * 60} {i}" for i in range(rows)],
            "nothing": pa.nulls(rows, pa.int32()),
        }
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    lance_sql.write(values(ROWS), tmp_path / "t.lance", max_rows_per_file=2_000, zone_rows=256)
    return str(tmp_path / "t.lance")


def asked(names: list[str]) -> list[str]:
    return [f"{what}({name})" for name in names for what in ("min", "max", "count")]


def answer(spark: SparkSession, path: str, names: list[str], form: str = "lance") -> DataFrame:
    return spark.read.format(form).load(path).selectExpr(*asked(names), "count(*)")


def is_known(frame: DataFrame) -> bool:
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain()
    return "LocalTableScan" in text.getvalue()


def test_no_task_reads_what_zone_maps_tell(spark: SparkSession, path: str) -> None:
    names = [*NAMES, "nothing"]
    frame = answer(spark, path, names)
    assert is_known(frame)
    assert frame.collect() == answer(spark, path, names, "lance_python").collect()
    assert frame.first()[0:3] == (False, True, ROWS - len(range(3, ROWS, 7)))


@pytest.mark.parametrize("name", ["ratio", "long_text"])
def test_rows_are_read_where_zone_maps_are_not_exact(spark: SparkSession, path: str, name: str) -> None:
    frame = answer(spark, path, [name])
    assert not is_known(frame)
    assert frame.collect() == answer(spark, path, [name], "lance_python").collect()


def test_deleted_rows_do_not_count(spark: SparkSession, path: str) -> None:
    dataset = lance_sql.open(path).delete("key = 2500")
    middle = spark.read.format("lance").load(path).selectExpr("min(key)", "max(number)", "max(text)")
    assert is_known(middle)
    assert middle.first() == (0, 3999, "t\u00e9xt 03999")
    counted = spark.read.format("lance").load(path).selectExpr("count(number)")
    assert not is_known(counted)
    assert counted.first() == answer(spark, path, ["number"], "lance_python").select("count(number)").first()
    dataset.delete("key = 0")  # the lowest value of most columns
    low = answer(spark, path, NAMES)
    assert not is_known(low)
    assert low.collect() == answer(spark, path, NAMES, "lance_python").collect()


def test_filters_groups_and_distinct_values_read_rows(spark: SparkSession, path: str) -> None:
    frame = spark.read.format("lance").load(path)
    plain = spark.read.format("lance_python").load(path)
    for query in (
        lambda of: of.where("key > 10").selectExpr("max(key)"),
        lambda of: of.groupBy("flag").agg({"key": "max"}).orderBy("flag"),
        lambda of: of.selectExpr("count(DISTINCT small)", "max(key)"),
        lambda of: of.selectExpr("max(key + 1)"),
        lambda of: of.selectExpr("max(key) FILTER (WHERE key < 100)"),
        lambda of: of.selectExpr("sum(key)", "max(key)"),
    ):
        assert not is_known(query(frame))
        assert query(frame).collect() == query(plain).collect()
    filtered = spark.read.format("lance").option("filter", "key < 10").load(path)
    assert filtered.selectExpr("max(key)", "count(*)").first() == (9, 10)


def test_the_version_that_was_loaded_answers(spark: SparkSession, path: str) -> None:
    before = spark.read.format("lance").load(path)
    lance_sql.write(values(10), path, mode="append")
    lance_sql.open(path).delete("key < 5")
    assert before.selectExpr("min(key)", "count(*)").first() == (0, ROWS)
    first = spark.read.format("lance").option("version", 1).load(path).selectExpr("min(key)", "max(long)")
    assert is_known(first)
    assert first.first() == (0, (ROWS - 1 - 1000) << 40)
    now = spark.read.format("lance").load(path).selectExpr("min(key)", "count(*)")
    assert now.first() == (5, ROWS)


def test_columns_added_later_and_tables_without_zone_maps(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": [1, 2, 3]}), path)
    lance_sql.open(path).add_columns(pa.schema([("b", pa.int32())]))
    lance_sql.write(pa.table({"a": [4], "b": pa.array([7], pa.int32())}), path, mode="append")
    frame = spark.read.format("lance").load(path).selectExpr("min(a)", "max(b)", "count(b)", "count(a)")
    assert is_known(frame)
    assert frame.first() == (1, 7, 1, 4)
    bare = str(tmp_path / "bare.lance")
    lance_sql.write(pa.table({"a": [1, 2, 3]}), bare, zone_maps=False)
    frame = spark.read.format("lance").load(bare).selectExpr("min(a)", "max(a)")
    assert not is_known(frame)
    assert frame.first() == (1, 3)
    empty = str(tmp_path / "empty.lance")
    lance_sql.write(pa.table({"a": pa.array([], pa.int64())}), empty)
    assert spark.read.format("lance").load(empty).selectExpr("min(a)", "count(a)").first() == (None, 0)


def test_days_beyond_the_year_9999(spark: SparkSession, tmp_path: Path) -> None:
    days = pa.array([5_000_001, 5_000_002, None], pa.int32()).cast(pa.date32())
    nested = pa.StructArray.from_arrays([days, pa.array([1, 2, 3])], ["day", "n"])
    path = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"id": range(3), "day": days, "s": nested}), path)
    frame = spark.read.format("lance").load(path)
    known = frame.selectExpr("min(day)", "max(day)").selectExpr(
        "unix_date(`min(day)`)", "unix_date(`max(day)`)"
    )
    assert [tuple(row) for row in known.collect()] == [(5_000_001, 5_000_002)]
