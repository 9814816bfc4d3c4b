"""Spark reads and writes Lance datasets: ``spark.read.format("lance")`` and ``df.write.format("lance")``.

    lance_sql.spark.register(spark)
    spark.read.format("lance").load("/data/sales.lance")
    df.write.format("lance").mode("append").save("/data/sales.lance")

`table` and `sql` read tables by path, and `write` supports all save modes. `compact`, `build_index`,
`delete`, `update` and `merge` run the operations of a dataset as Spark tasks. `vector_search`, `search` and
`nearest_join` search. The page ``docs/spark.md`` lists the options.

Modules are imported when they are used: every Python worker of Spark imports this package.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from lance_sql.spark.java import java_problem

if TYPE_CHECKING:
    from lance_sql.spark.maintenance import build_index, compact, delete, update
    from lance_sql.spark.merging import merge
    from lance_sql.spark.saving import write
    from lance_sql.spark.searching import nearest_join, search, vector_search
    from lance_sql.spark.session import local_session, register
    from lance_sql.spark.tables import sql, table

__all__ = [
    "build_index",
    "compact",
    "delete",
    "java_problem",
    "local_session",
    "merge",
    "nearest_join",
    "register",
    "search",
    "sql",
    "table",
    "update",
    "vector_search",
    "write",
]

#: public name -> module
_LAZY = {
    "build_index": "lance_sql.spark.maintenance",
    "compact": "lance_sql.spark.maintenance",
    "delete": "lance_sql.spark.maintenance",
    "local_session": "lance_sql.spark.session",
    "merge": "lance_sql.spark.merging",
    "nearest_join": "lance_sql.spark.searching",
    "register": "lance_sql.spark.session",
    "search": "lance_sql.spark.searching",
    "sql": "lance_sql.spark.tables",
    "table": "lance_sql.spark.tables",
    "update": "lance_sql.spark.maintenance",
    "vector_search": "lance_sql.spark.searching",
    "write": "lance_sql.spark.saving",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        from lance_sql.other_names import SPARK, no_attribute

        raise no_attribute(sys.modules[__name__], f"module {__name__!r}", name, SPARK, __all__)
    try:
        value = getattr(importlib.import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyspark":
            raise
        advice = "Spark support needs pyspark: pip install 'lance-sql[spark]'"
        raise ModuleNotFoundError(advice, name=error.name) from error
    globals()[name] = value
    return value
