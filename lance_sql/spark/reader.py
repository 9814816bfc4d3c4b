"""Reading: one Spark task per range of rows, Arrow batches all the way.

There is no `pushFilters` here, on purpose. Spark (up to 4.3 at least) keeps the reader that took a query's
filters in the data source object, which all queries over one DataFrame or view share: once
``df.where("i < 3")`` has run, ``df.count()`` counts three rows, and a union of two differently filtered parts
is one part twice. The option ``filter`` narrows a DataFrame explicitly instead.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator

import pyarrow as pa
from lance_engine.dataset import Dataset
from lance_engine.errors import ColumnNotFoundError
from lance_engine.scan import ScanSplit
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lance_sql.spark.options import Options
from lance_sql.spark.types import ROW_NUMBER_COLUMNS, arrow_schema, spark_schema, to_spark

# Spark's cost per batch is flat between 10,000 and 128,000 rows and rises on both sides.
DEFAULT_BATCH_ROWS = 65_536
# A task costs some milliseconds to start, so a small table gets few of them.
MIN_ROWS_PER_PARTITION = 65_536
MAX_ROWS_PER_PARTITION = 2_000_000


def read_schema(options: Options) -> StructType:
    """The Spark schema of what the options ask for."""
    dataset = _open(options, options.version)
    return spark_schema(dataset.scan(columns=options.columns).schema)


@dataclasses.dataclass
class SplitPartition(InputPartition):
    """A range of rows of one fragment."""

    split: ScanSplit


class LanceReader(DataSourceReader):
    """Plans and reads one query. All tasks read the version that was current when the query was planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        dataset = _open(options, options.version)
        self._options = options
        self._version = dataset.version
        self._schema = schema
        known = ROW_NUMBER_COLUMNS.union(dataset.schema.names)
        missing = [name for name in schema.names if name not in known]
        if missing:
            raise ColumnNotFoundError(
                f"Version {dataset.version} has no column '{missing[0]}'",
                path=options.path,
                remedy="The dataset changed after this DataFrame was made: load it again",
            )

    def partitions(self) -> list[InputPartition]:
        dataset = _open(self._options, self._version)
        count = self._options.partitions or _partition_count(dataset.count_rows())
        return [SplitPartition(split) for split in dataset.splits(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if not isinstance(partition, SplitPartition):
            return  # Spark makes up a partition where there is none: an empty dataset
        target = arrow_schema(self._schema)
        dataset = _open(self._options, self._version)
        scanner = dataset.scan(
            columns=self._schema.names,
            filter=self._options.filter,
            splits=[partition.split],
            batch_size=self._options.batch_size or DEFAULT_BATCH_ROWS,
        )
        for batch in scanner.to_batches():
            yield to_spark(batch, target)


def _open(options: Options, version: int | None) -> Dataset:
    return Dataset.open(options.path, version, storage_options=options.storage_options)


def _partition_count(rows: int) -> int:
    """About two tasks per core, but none tiny and none huge."""
    per_core = 2 * (os.cpu_count() or 1)
    return max(min(per_core, rows // MIN_ROWS_PER_PARTITION), -(-rows // MAX_ROWS_PER_PARTITION), 1)
