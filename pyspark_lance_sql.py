"""Spark finds data sources in modules called ``pyspark_*``: ``format("lance")`` works without registering."""

from lance_sql.spark.source import LanceDataSource as DefaultSource

__all__ = ["DefaultSource"]
