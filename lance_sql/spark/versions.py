"""What we rely on of Spark besides its documented interface, and where its versions differ, from 4.0 on.

A new version of Spark may change each of these; nothing else in lance-sql uses private names of PySpark, or
classes of the JVM. The names of Spark's types are in `lance_sql.types`.
"""

from __future__ import annotations

import inspect
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa
import pyspark.sql.types as spark
from pyspark.sql import DataFrame, SparkSession, datasource
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


def worker_socket() -> socket.socket | None:
    """The connection of this worker to the JVM, which is in a stack frame of Spark's daemon."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "worker" and PurePath(frame.f_code.co_filename).name == "daemon.py":
            connection = frame.f_locals.get("sock")
            return connection if isinstance(connection, socket.socket) else None
        frame = frame.f_back  # type: ignore[assignment]
    return None


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


def execution_of(frame: DataFrame) -> Any:
    """The plans of a query: ``analyzed()`` and ``optimizedPlan()``; None on Spark Connect."""
    plans = getattr(frame, "_jdf", None)
    return None if plans is None else plans.queryExecution()


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """The query with an analyzed plan."""
    jvm: Any = spark._jvm
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def scala_items(items: Any) -> Iterable[Any]:
    """The elements of a Scala collection."""
    iterator = items.iterator()
    while iterator.hasNext():
        yield iterator.next()


def class_name(thing: Any) -> str:
    """The simple name of the class of a JVM object."""
    return str(thing.getClass().getSimpleName())


def collation_of(kind: spark.StringType) -> str:
    """The collation of a type of strings, which Spark's Python does not document."""
    return str(getattr(kind, "collation", BINARY_COLLATION))


# ---- plans -------------------------------------------------------------------------------------------

#: Nodes whose output consists of their own expressions.
COMPUTING: Final = frozenset({"Project", "Aggregate"})
#: Nodes that pass on columns of their children unchanged, and need those they refer to.
PASSING: Final = frozenset(
    {
        "Filter", "Join", "Sort", "Window", "Generate", "GlobalLimit", "LocalLimit", "Repartition",
        "RepartitionByExpression", "SubqueryAlias", "Sample", "ResolvedHint",
    }
)  # fmt: skip
FILTER: Final = "Filter"


def is_scan(plan: Any) -> bool:
    """Whether a node of an optimized plan reads a table."""
    return class_name(plan) == "DataSourceV2ScanRelation"


def is_python_table(plan: Any) -> bool:
    """Whether a node of an analyzed plan is a Python data source; its name is ``table().name()``."""
    return class_name(plan) == "DataSourceV2Relation" and class_name(plan.table()) == "PythonTable"


def with_children(spark: SparkSession, plan: Any, children: Sequence[Any]) -> Any:
    """A node with other children."""
    return plan.withNewChildren(_seq(spark, children))


def projected(spark: SparkSession, attributes: Sequence[Any], source: Any) -> Any:
    """`source` with these attributes, matched by name; those that it lacks are null."""
    jvm: Any = spark._jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    own = {str(attribute.name()): attribute for attribute in scala_items(source.output())}
    columns = []
    for attribute in attributes:
        name = str(attribute.name())
        value = own.get(name)
        if value is None:
            value = expressions.Literal.create(None, attribute.dataType())
        none = jvm.scala.Option.apply(None)
        columns.append(
            expressions.Alias(value, name, attribute.exprId(), attribute.qualifier(), none, _seq(spark, []))
        )
    return jvm.org.apache.spark.sql.catalyst.plans.logical.Project(_seq(spark, columns), source)


def _seq(spark: SparkSession, items: Sequence[Any]) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(list(items))


# ---- conditions in plans ------------------------------------------------------------------------------

AND: Final = "And"
OR: Final = "Or"
NOT: Final = "Not"
IN: Final = "In"
IN_SET: Final = "InSet"
LITERAL: Final = "Literal"
COLUMN: Final = "AttributeReference"
FIELD: Final = "GetStructField"
#: A comparison, and the one with swapped operands.
COMPARISONS: Final[Mapping[str, str]] = {
    "EqualTo": "EqualTo",
    "EqualNullSafe": "EqualNullSafe",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}
#: Tests of strings, and their names as filters of data sources.
MATCHES: Final[Mapping[str, str]] = {
    "StartsWith": "StringStartsWith",
    "EndsWith": "StringEndsWith",
    "Contains": "StringContains",
}
NULL_TESTS: Final = frozenset({"IsNull", "IsNotNull"})


def has_collation(expression: Any) -> bool:
    """Whether a string has a collation, which determines equality."""
    return str(expression.dataType().sql()).startswith("STRING ")
