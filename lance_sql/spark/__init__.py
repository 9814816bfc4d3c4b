"""Spark reads and writes Lance datasets: ``spark.read.format("lance")`` and ``df.write.format("lance")``.

    lance_sql.spark.register(spark)
    spark.read.format("lance").load("/data/sales.lance")
    df.write.format("lance").mode("append").save("/data/sales.lance")

Options of reading: ``version``, ``columns`` (names separated by commas, or a JSON list; ``_rowid`` and
``_rowaddr`` are such names too), ``filter`` (SQL), ``partitions``, ``batch_size`` (rows), ``storage_options``
(a JSON object). Options of writing: ``data_storage_version``, ``max_rows_per_file``, ``max_bytes_per_file``,
``storage_options``.
"""

from __future__ import annotations

from lance_sql.spark.java import java_problem

try:
    from lance_sql.spark.session import local_session, register
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "pyspark":
        raise
    advice = "Spark support needs pyspark: pip install 'lance-sql[spark]'"
    raise ModuleNotFoundError(advice, name=error.name) from error

__all__ = ["java_problem", "local_session", "register"]
