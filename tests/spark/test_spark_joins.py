"""The plans of the TPC-H queries: Spark prunes, pushes and broadcasts over Lance as over Parquet."""

from __future__ import annotations

import re
import shutil
from typing import NamedTuple

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
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "100k",
    "spark.sql.maxMetadataStringLength": "10000",
    "spark.sql.debug.maxToStringFields": "1000",
}
KINDS = ("parquet", "lance", "catalog")


@pytest.fixture(scope="module")
def sessions(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, SparkSession]:
    folder = tmp_path_factory.mktemp("tpch")
    generate(folder / "parquet", 0.01)
    found = {}
    for table in TABLES:
        lance_sql.write(pq.read_table(folder / "parquet" / f"{table}.parquet"), folder / f"{table}.lance")
    for kind in KINDS:
        here = found[kind] = spark.newSession()
        lance_sql.spark.register(here)
        for name, value in SETTINGS.items():
            here.conf.set(name, value)
        if kind == "catalog":
            here.conf.set("spark.sql.catalog.plans", "lancesql.spark.LanceCatalog")
            here.conf.set("spark.sql.catalog.plans.path", str(folder))
            here.sql("USE plans")
            continue
        for table in TABLES:
            path = folder / "parquet" / f"{table}.parquet" if kind == "parquet" else folder / f"{table}.lance"
            here.read.format(kind).load(str(path)).createOrReplaceTempView(table)
    return found


class Scan(NamedTuple):
    """What a plan shows of the scan of one table."""

    table: str
    columns: frozenset[str]
    filters: frozenset[str]


def plan(session: SparkSession, number: int) -> str:
    text: str = session.sql(query_text(number))._jdf.queryExecution().executedPlan().toString()
    return text


def scans(text: str) -> list[Scan]:
    found = []
    for line in text.splitlines():
        if "ReadSchema" not in line:
            continue
        table = re.search(r"/(\w+)\.(?:parquet|lance)\b", line)
        columns = re.search(r"ReadSchema: struct<(.*?)>", line)
        assert table, line
        assert columns, line
        filters = split_filters(line.partition("PushedFilters: [")[2])
        # Spark takes all columns of Parquet as nullable, and asks for what is not null everywhere.
        told = frozenset(filter for filter in filters if not filter.startswith("IsNotNull"))
        found.append(Scan(table[1], frozenset(re.findall(r"(\w+):", columns[1])), told))
    return found


def split_filters(text: str) -> list[str]:
    """The filters of a list up to its end, which have commas between them and within their brackets."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        if not depth and sign in ",]":
            parts.append(text[start:place].strip())
            start = place + 1
            if sign == "]":
                break
        depth += (sign in "([") - (sign in ")]")
    return [part for part in parts if part]


def joins(session: SparkSession, number: int) -> list[str]:
    return JOIN.findall(plan(session, number))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["lance", "catalog"])
def test_broadcast_joins_where_parquet_has_them(sessions: dict[str, SparkSession], kind: str) -> None:
    kinds = set()
    for number in range(1, 23):
        over_parquet, over_lance = joins(sessions["parquet"], number), joins(sessions[kind], number)
        assert len(over_lance) == len(over_parquet), number
        broadcasts = [
            sum(name.startswith("Broadcast") for name in found) for found in (over_lance, over_parquet)
        ]
        assert broadcasts[0] >= broadcasts[1], (number, over_lance, over_parquet)
        kinds |= {*over_parquet}
    assert {"BroadcastHashJoin", "SortMergeJoin"} <= kinds  # else the limit shows nothing


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["lance", "catalog"])
def test_scans_read_no_more_columns_and_take_no_fewer_filters_than_over_parquet(
    sessions: dict[str, SparkSession], kind: str
) -> None:
    filters = 0
    for number in range(1, 23):
        left = scans(plan(sessions["parquet"], number))
        for scan in scans(plan(sessions[kind], number)):
            over_parquet = [
                other
                for other in left
                if other.table == scan.table
                and other.columns >= scan.columns
                and other.filters <= scan.filters
            ]
            assert over_parquet, (number, scan, left)
            found = max(over_parquet, key=lambda other: (len(other.filters), -len(other.columns)))
            left.remove(found)
            filters += len(found.filters)
        # Where two scans of Parquet only differ in IsNotNull, Spark reads Lance once.
        assert {other.table for other in left} <= {"lineitem"}, (number, left)
    assert filters > 30, filters


def test_plans_show_columns_and_filters(
    sessions: dict[str, SparkSession], capsys: pytest.CaptureFixture[str]
) -> None:
    sessions["lance"].sql(query_text(6)).explain()
    shown = capsys.readouterr().out
    assert "ReadSchema: struct<l_extendedprice:decimal(15,2),l_discount:decimal(15,2)>" in shown
    assert "GreaterThanOrEqual(l_shipdate,1994-01-01)" in shown
    assert "LessThan(l_quantity,24.00)" in shown
