"""The writer for DELETE, UPDATE and MERGE of Spark SQL, whose changes come from the planner in the JVM."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance_engine.table import fragment_from_bytes
from lance_engine.write import data_paths
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_sql.spark.job_files import JobFiles
from lance_sql.spark.options import Options
from lance_sql.spark.row_changes import (
    LEADING_COLUMNS,
    WrittenChanges,
    commit_changes,
    offered_types,
    write_changes,
)
from lance_sql.spark.types import check_fits
from lance_sql.spark.versions import arrow_schema


class RowChangesWriter(DataSourceArrowWriter):
    """One statement: created on the driver, sent to every task, then used by the driver to commit or abort.

    The commit is based on the version that the statement read; it conflicts with other writers that have
    changed the same rows since.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = dataclasses.replace(options, version=options.changed_version, tag=None, as_of=None)
        snapshot = self._options.open().snapshot
        self._files = JobFiles(options, snapshot.version)
        self._columns = schema.names[LEADING_COLUMNS:]
        offered = arrow_schema(StructType(schema.fields[LEADING_COLUMNS:]))
        if self._columns:
            check_fits(offered_types(offered, snapshot.schema.to_arrow()), snapshot.schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenChanges:
        return write_changes(iterator, self._options.open().snapshot, self._files.tag)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        written = [message for message in messages if isinstance(message, WrittenChanges)]
        commit_changes(self._options.open().snapshot, self._columns, written)
        kept = [fragment_from_bytes(data) for task in written for data in [*task.moved, *task.inserted]]
        self._files.remove_duplicates(set(data_paths(kept)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._files.discard()
