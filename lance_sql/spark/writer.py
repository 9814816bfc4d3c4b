"""Writing: every Spark task writes fragments; the driver commits all at once or removes the files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_sql.spark.job import WriteJob, WrittenFragments
from lance_sql.spark.options import Options
from lance_sql.spark.packed import unpack
from lance_sql.spark.versions import arrow_schema
from lance_sql.spark.workers import settle


class LanceWriter(DataSourceArrowWriter):
    """One write job: created on the driver, sent to every task, then committed or aborted by the driver."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._job = WriteJob(options, schema, overwrite)
        settle()

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        written = self._job.write(iterator)
        settle()
        return written

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._job.publish(messages)
        settle()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._job.discard()


class PackedWriter(LanceWriter):
    """The same for rows packed by the planner in the JVM."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        super().__init__(options, schema, overwrite)
        self._schema = schema

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        return super().write(unpack(iterator, arrow_schema(self._schema)))
