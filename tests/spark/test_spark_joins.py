"""The plans of the TPC-H queries: Spark broadcasts over Lance whatever it broadcasts over Parquet."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lance_sql
import lance_sql.spark
from demo.data import TABLES, generate
from demo.queries import query_text

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the planner is built where there is a JDK (javac)"
)

JOIN = re.compile(r"\b(\w+Join|CartesianProduct)\b")
# Some of the tables here are larger and some smaller, as with more data and Spark's own limit.
BROADCAST_BYTES = "100k"


@pytest.fixture(scope="module")
def sessions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, SparkSession]:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder / "parquet", 0.01)
    found = {}
    for format in ("parquet", "lance"):
        here = found[format] = spark.newSession()
        lance_sql.spark.register(here)
        here.conf.set("spark.sql.adaptive.enabled", "false")
        here.conf.set("spark.sql.autoBroadcastJoinThreshold", BROADCAST_BYTES)
        for table in TABLES:
            path = folder / "parquet" / f"{table}.parquet"
            if format == "lance":
                path = folder / f"{table}.lance"
                lance_sql.write(pq.read_table(folder / "parquet" / f"{table}.parquet"), path)
            here.read.format(format).load(str(path)).createOrReplaceTempView(table)
    return found


def joins(session: SparkSession, number: int) -> list[str]:
    plan = session.sql(query_text(number))._jdf.queryExecution().executedPlan().toString()
    return JOIN.findall(plan)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("numbers", [(2, 7, 10, 13, 18), pytest.param(range(1, 23), marks=pytest.mark.slow)])
def test_broadcast_joins_where_parquet_has_them(
    sessions: dict[str, SparkSession], numbers: Sequence[int]
) -> None:
    over_parquet, over_lance = (
        {number: joins(session, number) for number in numbers} for session in sessions.values()
    )
    fewer = {
        number: (over_parquet[number], over_lance[number])
        for number in over_parquet
        if len(over_lance[number]) != len(over_parquet[number])
        or sum(name.startswith("Broadcast") for name in over_lance[number])
        < sum(name.startswith("Broadcast") for name in over_parquet[number])
    }
    assert not fewer
    kinds = {name for found in over_parquet.values() for name in found}
    assert {"BroadcastHashJoin", "SortMergeJoin"} <= kinds  # else the limit shows nothing


def test_plans_show_columns_and_filters(
    sessions: dict[str, SparkSession], capsys: pytest.CaptureFixture[str]
) -> None:
    sessions["lance"].sql(query_text(6)).explain()
    plan = capsys.readouterr().out
    assert "ReadSchema: struct<l_extendedprice:decimal(15,2),l_discount:decimal(15,2)>" in plan
    assert "GreaterThanOrEqual(l_shipdate,1994-01-01)" in plan
    assert "LessThan(l_quantity,24.00)" in plan
