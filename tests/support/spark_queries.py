"""Random queries in Spark, over datasets and over the same rows in its memory, where nothing is pushed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from compared_queries import rows
from random_queries import Queries
from random_tables import RandomTable, write_tables
from sqlglot.errors import SqlglotError

#: Queries of one seed, each of which takes a quarter of a second.
QUERIES = 40
#: Rows of all tables of a seed, beyond which a query takes seconds.
_MOST_ROWS = 3000


def differences(folder: Path, seed: int, counted: Counter[str], count: int = QUERIES) -> Iterator[str]:
    """What differs for the queries of a seed; `counted` has those that ran over datasets."""
    from spark_uses import session

    spark, tables = session(), write_tables(folder, seed)
    has_times = any(pa.types.is_time(one) for table in tables for one in table.rows.schema.types)
    if has_times or sum(table.rows.num_rows for table in tables) > _MOST_ROWS:
        return  # Spark reads no times of day
    in_memory = [table._replace(name=f"memory {table.name}") for table in tables]
    try:
        for table, copy in zip(tables, in_memory, strict=True):
            _put(spark, folder, table, copy)
        made, expecting = (Queries(some, seed) for some in (tables, in_memory))
        for _ in range(count):
            # The same seed makes the same query of the other tables.
            text, plain = _in_spark(made.statement()), _in_spark(expecting.statement())
            if text is None or plain is None:
                continue
            expected = _ask(spark, plain)
            if isinstance(expected, Exception):
                continue
            counted["statements"] += 1
            found = _ask(spark, text)
            if isinstance(found, Exception):
                yield f"seed {seed}, Spark: {text}\n  {str(found)[:500]}"
            elif rows(found) != rows(expected):
                lost, extra = rows(expected) - rows(found), rows(found) - rows(expected)
                yield f"seed {seed}, Spark: {text}\n  missing {list(lost)[:5]}\n  more {list(extra)[:5]}"
    finally:
        spark.catalog.clearCache()


def _put(spark: Any, folder: Path, table: RandomTable, copy: RandomTable) -> None:
    """Views of a dataset, and of its rows in memory."""
    path = str(folder / f"{table.name}.lance")
    spark.read.format("lance").load(path).createOrReplaceTempView(f"`{table.name}`")
    kept = spark.read.format("lance").load(path).cache()
    assert kept.count() == table.rows.num_rows, table.name
    kept.createOrReplaceTempView(f"`{copy.name}`")


def _in_spark(text: str) -> str | None:
    """A query in Spark's SQL, None if it has no words for it."""
    try:
        return sqlglot.transpile(
            text, read="duckdb", write="spark", unsupported_level=sqlglot.ErrorLevel.IGNORE
        )[0]
    except SqlglotError:
        return None


def _ask(spark: Any, text: str) -> list[tuple[Any, ...]] | Exception:
    try:
        return [tuple(row) for row in spark.sql(text).collect()]
    except Exception as error:
        return error
