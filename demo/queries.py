"""The engines that answer the demo's queries, and when two answers count as the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

import lance_sql
from demo.data import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = Path(__file__).parents[1] / "queries" / "tpch"

Rows = list[tuple[Any, ...]]
# Runs a query text.
Engine = Callable[[str], Rows]

# DataFusion rounds the average of a decimal to six digits.
ABSOLUTE_TOLERANCE = 2e-6


def query_text(number: int) -> str:
    return (QUERIES / f"q{number:02}.sql").read_text().strip().rstrip(";")


def over_parquet(folder: Path) -> Engine:
    """DuckDB's own Parquet reader: the answers to compare with."""
    connection = duckdb.connect()
    for table in TABLES:
        connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{folder / table}.parquet')")
    return lambda text: connection.sql(text).fetchall()


def over_lance(folder: Path, engine: str) -> Engine:
    """The datasets in `folder` as tables of one of lance-sql's engines."""
    connection = lance_sql.connect(folder, engine=engine)
    return lambda text: connection.sql(text).fetchall()


def over_lance_in_spark(folder: Path, spark: SparkSession) -> Engine:
    for table in TABLES:
        spark.read.format("lance").load(str(folder / f"{table}.lance")).createOrReplaceTempView(table)
    return lambda text: [tuple(row) for row in spark.sql(text).collect()]


def same(left: Sequence[tuple[Any, ...]], right: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two answers are equal, numbers up to rounding of averages."""
    return len(left) == len(right) and all(
        len(a) == len(b) and all(map(_same_value, a, b)) for a, b in zip(left, right, strict=True)
    )


def _same_value(left: Any, right: Any) -> bool:
    if isinstance(left, int | float | Decimal) and isinstance(right, int | float | Decimal):
        return math.isclose(left, right, rel_tol=1e-12, abs_tol=ABSOLUTE_TOLERANCE)
    return bool(left == right)
