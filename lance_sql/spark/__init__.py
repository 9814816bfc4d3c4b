"""Spark reads and writes Lance datasets: ``spark.read.format("lance")`` and ``df.write.format("lance")``.

    lance_sql.spark.register(spark)
    spark.read.format("lance").load("/data/sales.lance")
    df.write.format("lance").mode("append").save("/data/sales.lance")

`table` and `sql` read tables by path, `narrow` makes a query read only what it needs, `write` knows all
modes of saving; `compact`, `build_index`, `delete`, `update` and `merge` let Spark's tasks do what the
operations of a dataset do. The page ``docs/spark.md`` lists the options.
"""

from __future__ import annotations

from lance_sql.spark.java import java_problem

try:
    from lance_sql.spark.maintenance import build_index, compact, delete, update
    from lance_sql.spark.merging import merge
    from lance_sql.spark.narrow import narrow
    from lance_sql.spark.saving import write
    from lance_sql.spark.session import local_session, register
    from lance_sql.spark.tables import sql, table
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pyspark":
        raise
    advice = "Spark support needs pyspark: pip install 'lance-sql[spark]'"
    raise ModuleNotFoundError(advice, name=error.name) from error

__all__ = [
    "build_index",
    "compact",
    "delete",
    "java_problem",
    "local_session",
    "merge",
    "narrow",
    "register",
    "sql",
    "table",
    "update",
    "write",
]
