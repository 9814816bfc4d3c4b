"""A local Spark session with suitable settings."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Final

from lance_engine.base import LiveObjects, public
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from lance_sql.spark.java import java_problem
from lance_sql.spark.planner import CATALOG, PROVIDER, TOLD, planner_jar, tell_without_planner
from lance_sql.spark.source import LanceDataSource, PlannedDataSource
from lance_sql.spark.versions import (
    ALREADY_REGISTERED,
    PANDAS_WARNING,
    QUERY_LOGGERS,
    has_class,
    has_jvm,
    set_active,
    set_environment,
)

#: The catalog of the current directory, in which ``lance.`path` `` is the table at a path.
_CATALOG: Final = "spark.sql.catalog.lance"
# The sessions in which the data source is registered: registering again causes a warning.
_registered: LiveObjects[SparkSession] = LiveObjects()


@public
def local_session(*, cores: int = 2, memory: str = "4g") -> SparkSession:
    """A local session in which ``format("lance")`` is registered; `memory` is for the JVM, such as "2g".

    `cores` tasks run at once.
    It only listens on the loopback interface and does not start a web interface. The catalog ``lance`` has
    the tables of the current directory, and ``lance.`path` `` is the one at a path. Without Java, it raises a
    RuntimeError that explains how to install it.
    """
    problem = java_problem()
    if problem is not None:
        raise RuntimeError(problem)
    # Spark imports pandas and warns about version 3, which nothing here uses.
    warnings.filterwarnings("ignore", PANDAS_WARNING, FutureWarning)
    for logger in QUERY_LOGGERS:
        PySparkLogger.getLogger(logger).setLevel(logging.CRITICAL)
    # Otherwise Spark starts any "python3", which may not have this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
    }
    jar = planner_jar()
    if jar is not None:
        settings["spark.jars"] = str(jar)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("lance-sql")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    if jar is not None and session.conf.get(_CATALOG, None) is None:
        session.conf.set(_CATALOG, CATALOG)
        session.conf.set(f"{_CATALOG}.path", os.getcwd())
    register(session)
    return session


@public
def register(spark: SparkSession) -> None:
    """Register ``format("lance")`` with a Spark session, which is told once if it lacks our jar."""
    if has_jvm(spark) and not has_class(spark, PROVIDER):
        tell_without_planner()
        set_environment(spark, TOLD, "1")
    for source in (LanceDataSource, PlannedDataSource):
        try:
            spark.dataSource.register(source)
        except PySparkException as error:  # Spark 4.0 refuses data sources that it found itself
            if error.getCondition() != ALREADY_REGISTERED:
                raise
    _registered.add(spark)


def ensure_registered(spark: SparkSession) -> None:
    """Register with a session unless already done, and make it the active one of this thread.

    Spark looks up data source names in the active session, which new threads do not have.
    """
    if spark not in _registered:
        register(spark)
    if has_jvm(spark):
        set_active(spark)
