"""Reading: every Spark task reads some ranges of rows, as Arrow batches from file to JVM.

`pushFilters` is deliberately not implemented. Spark (up to 4.3 at least) keeps the reader that received a
query's filters in the data source object, which all queries over one DataFrame or view share: once
``df.where("i < 3")`` has run, ``df.count()`` counts three rows, and a union of two differently filtered parts
contains one part twice. Instead, the planner in the JVM gives each query a reader of its own, and the option
``filter`` restricts a DataFrame explicitly.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.base import ScanMetrics
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import ColumnNotFoundError
from lance_engine.scan import ROW_ADDRESS, ROW_ID, ScanSplit
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lance_sql.catalog.metadata import metadata_table
from lance_sql.spark.log import logger
from lance_sql.spark.options import OURS, Options
from lance_sql.spark.packed import gathered, pack
from lance_sql.spark.partitions import plan_splits, share_of_rows
from lance_sql.spark.pushed import row_filter
from lance_sql.spark.search_table import AskedSearch
from lance_sql.spark.types import ROW_NUMBER_COLUMNS, spark_schema, to_spark
from lance_sql.spark.version_cache import open_cached
from lance_sql.spark.versions import arrow_schema
from lance_sql.spark.workers import has_one_processor, settle

#: The metadata column with the id of the fragment of a row, as in LanceTable.java.
FRAGMENT: Final = "_fragid"
# Spark's cost per batch is constant between 10,000 and 128,000 rows and higher below and above.
DEFAULT_BATCH_ROWS: Final = 65_536


def schema_of(options: Options, dataset: DatasetVersion) -> StructType:
    """The Spark schema of the columns that the options select from a dataset."""
    return spark_schema(dataset.scan(columns=_columns(options, dataset)).schema)


def _columns(options: Options, dataset: DatasetVersion) -> list[str]:
    names = list(options.columns or dataset.schema.names)
    return [*names, ROW_ID] if options.row_id and ROW_ID not in names else names


@dataclasses.dataclass
class SplitPartition(InputPartition):
    """Ranges of rows of a version that one task reads."""

    splits: list[ScanSplit]
    version: int


@dataclasses.dataclass
class SharePartition(InputPartition):
    """A share of the rows of a small table, and what a query reads from it; created by SharedReads.java."""

    told: str


class WholePartition(InputPartition):
    """A metadata table, or the result of a search."""


class LanceReader(DataSourceReader):
    """Plans and reads one query. All tasks read the version that was current when the query was planned."""

    def __init__(self, options: Options, schema: StructType) -> None:
        dataset = options.open()
        self._options = options.at(dataset)
        self._schema = schema
        self._packed = None if options.packed is None else schema
        if options.packed is not None:
            self._schema = StructType.fromJson(json.loads(options.packed))
        if self._table is None:
            require_columns(dataset, self._schema, options.path)

    @property
    def _table(self) -> Callable[[Sequence[str]], pa.Table] | None:
        """The columns of what is read instead of the rows of the dataset."""
        part, search = self._options.part, self._options.search
        if search is not None:
            return AskedSearch(self._options.open(), search).rows
        if part is not None:
            return lambda names: metadata_table(self._options.open(), part).select(list(names))
        return None

    def partitions(self) -> list[InputPartition]:
        if self._table is not None:
            return [WholePartition(None)]
        dataset = self._options.open()
        planned = plan_splits(dataset, self._options)
        logger.info("%s version %d: %s", dataset.uri, dataset.version, planned)
        settle()
        return [SplitPartition(splits, dataset.version) for splits in planned.partitions]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batches = self._batches(partition)
        if self._packed is None:
            return batches
        target = arrow_schema(self._packed)
        return (packed for batch in gathered(batches) for packed in pack(batch, target))

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, WholePartition):
            assert self._table is not None
            for batch in self._table(self._schema.names).to_batches():
                yield to_spark(batch, arrow_schema(self._schema))
        elif isinstance(partition, SplitPartition):  # Spark creates one for empty datasets
            yield from read_splits(self._options, self._schema, partition)
        elif isinstance(partition, SharePartition):
            yield from self._share(json.loads(partition.told))

    def _share(self, told: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        query = told["query"]
        limit = query.get(OURS + "limit")
        options = dataclasses.replace(
            self._options,
            pushed_filters=query.get(OURS + "pushed_filters"),
            limit=None if limit is None else int(limit),
        )
        dataset = open_cached(options)
        splits = share_of_rows(dataset.snapshot, told["share"], told["shares"])
        schema = StructType.fromJson(json.loads(told["columns"]))
        yield from _read(dataset, options, schema, splits)


def read_splits(options: Options, schema: StructType, partition: SplitPartition) -> Iterator[pa.RecordBatch]:
    """In a task: the rows of a partition that pass the filter, converted to `schema`."""
    dataset = open_cached(dataclasses.replace(options, version=partition.version))
    return _read(dataset, options, schema, partition.splits)


def _read(
    dataset: DatasetVersion, options: Options, schema: StructType, splits: Sequence[ScanSplit]
) -> Iterator[pa.RecordBatch]:
    target = arrow_schema(schema)
    wants_fragments = FRAGMENT in schema.names and FRAGMENT not in dataset.schema.names
    names = dict.fromkeys(
        ROW_ADDRESS if wants_fragments and name == FRAGMENT else name for name in schema.names
    )
    scanner = dataset.scan(
        columns=list(names),
        filter=row_filter(options, dataset.snapshot),
        limit=options.limit,
        splits=splits,
        batch_size=options.batch_size or DEFAULT_BATCH_ROWS,
    )
    if has_one_processor():
        scanner.decode_here()
    for batch in scanner.to_batches():
        yield to_spark(_with_fragments(batch, schema.names) if wants_fragments else batch, target)
    if scanner.metrics is not None:
        logger.info("%s version %d: %s", dataset.uri, dataset.version, read_summary(scanner.metrics))
    settle()


def _with_fragments(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """The columns with these names; the id of a fragment is in the address of its rows."""
    fragments = pc.shift_right(batch.column(ROW_ADDRESS), pa.scalar(32, pa.uint64()))
    arrays = [fragments if name == FRAGMENT else batch.column(name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def read_summary(metrics: ScanMetrics) -> str:
    """What a task read and skipped, for the log."""
    texts = [
        f"{metrics.rows_out:,} rows from {metrics.rows_left:,} of {metrics.rows:,} stored",
        f"{metrics.fragments_read:,} of {metrics.fragments:,} fragments",
    ]
    if metrics.zones:
        texts.append(f"{metrics.zones_read:,} of {metrics.zones:,} zones")
    texts.append(f"{metrics.bytes_read:,} bytes")
    texts += [f"index {index.name} for {index.filter}" for index in metrics.indices]
    return ", ".join(texts)


def require_columns(dataset: DatasetVersion, schema: StructType, path: str, also: Iterable[str] = ()) -> None:
    """ColumnNotFoundError if the dataset lost a column since the DataFrame was made."""
    known = ROW_NUMBER_COLUMNS.union(dataset.schema.names, also, [FRAGMENT])
    missing = [name for name in schema.names if name not in known]
    if missing:
        raise ColumnNotFoundError(
            f"Version {dataset.version} has no column '{missing[0]}'",
            path=path,
            remedy="The dataset changed after this DataFrame was made: load it again",
        )
