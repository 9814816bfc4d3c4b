"""What we rely on of Spark besides its documented interface, and where its versions differ, from 4.0 on.

A new version of Spark may change each of these; nothing else in lance-sql uses private names of PySpark, or
classes of the JVM. The names of Spark's types are in `lance_sql.types`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyspark.sql.types as spark
from pyspark.sql import SparkSession, datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema

# ---- names of PySpark ------------------------------------------------------------------------------

#: The type of times of day, from Spark 4.1 on.
TIME_TYPE: Final[Any] = getattr(spark, "TimeType", None)

_NAMES_THE_ZONE = "timezone" in inspect.signature(to_arrow_schema).parameters
_ROWS_PER_BATCH = 10_000


def arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema that Spark requires from a reader of `schema`, and passes to a writer."""
    return to_arrow_schema(schema, timezone="UTC") if _NAMES_THE_ZONE else to_arrow_schema(schema)


class _StreamRowWriter(DataSourceStreamWriter):
    """For versions with row-based streams: passes rows to `write` of the subclass as batches."""

    schema: spark.StructType

    def __init_subclass__(cls) -> None:
        write = cls.write

        def write_rows(self: _StreamRowWriter, iterator: Iterator[Any]) -> WriterCommitMessage:
            return write(self, self._batches(iterator))

        cls.write = write_rows

    def _batches(self, rows: Iterator[Any]) -> Iterator[Any]:
        target = arrow_schema(self.schema)
        while part := [row.asDict(recursive=True) for row in islice(rows, _ROWS_PER_BATCH)]:
            yield pa.RecordBatch.from_pylist(part, target)


#: The base class of a sink that receives Arrow batches.
StreamArrowWriter: Final[Any] = getattr(datasource, "DataSourceStreamArrowWriter", _StreamRowWriter)

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark before 4.2 reads the available data without asking."""


#: The collation of strings that are compared by their bytes.
BINARY_COLLATION: Final = "UTF8_BINARY"

#: How Spark begins its warning about pandas 3.
PANDAS_WARNING: Final = "PySpark does not yet fully support pandas"

#: The loggers that print each error of a query with its stack in the JVM, before PySpark raises it.
QUERY_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")

#: The error of Spark 4.0 for a data source that it found itself.
ALREADY_REGISTERED: Final = "DATA_SOURCE_ALREADY_EXISTS"

#: The rule that passes filters to data sources, and the setting with which users exclude rules.
PASSES_FILTERS: Final = "org.apache.spark.sql.execution.datasources.v2.V2ScanRelationPushDown"
EXCLUDED_RULES: Final = "spark.sql.optimizer.excludedRules"


def task_has_one_processor() -> bool:
    """Whether this process runs a task to which Spark gave one processor, as it does by default."""
    tasks = sys.modules.get("pyspark.taskcontext")  # Spark's workers have loaded it; other engines may not
    context = None if tasks is None else tasks.TaskContext.get()
    return context is not None and context.cpus() == 1


# ---- objects of the JVM, which Spark Connect does not have ---------------------------------------------


def has_jvm(spark: SparkSession) -> bool:
    """Whether the JVM of a session is in reach."""
    return hasattr(spark, "_jsparkSession")


def has_class(spark: SparkSession, name: str) -> bool:
    """Whether the JVM of a session finds a class where Spark looks for data sources."""
    jvm: Any = spark._jvm
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(f"{name.replace('.', '/')}.class") is not None


def set_environment(spark: SparkSession, name: str, value: str) -> None:
    """Set a variable for the Python processes of data sources that are registered from now on."""
    spark.sparkContext.environment[name] = value


def set_active(spark: SparkSession) -> None:
    """Make a session the active one of this thread of the JVM."""
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def collation_of(kind: spark.StringType) -> str:
    """The collation of a type of strings, which Spark's Python does not document."""
    return str(getattr(kind, "collation", BINARY_COLLATION))
