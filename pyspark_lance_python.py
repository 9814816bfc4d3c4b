"""Spark finds the Python part of the planned data source in this module; see `lance_sql.spark.planner`."""

from lance_sql.spark.source import PlannedDataSource as DefaultSource

__all__ = ["DefaultSource"]
