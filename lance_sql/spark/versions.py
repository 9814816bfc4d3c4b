"""Differences between versions of PySpark, from 4.0 on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyspark.sql.types as spark
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema

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
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Spark before 4.2 reads the available data without asking."""


__all__ = ["TIME_TYPE", "StreamArrowWriter", "SupportsTriggerAvailableNow", "arrow_schema"]
