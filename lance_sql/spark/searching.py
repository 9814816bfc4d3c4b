"""Searches in Spark: for a single vector, full text, and for the vectors of a DataFrame.

Tasks search a part of the rows or some of the queries each; their results are merged.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from os import PathLike, fspath
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance_engine.base import Reporter, public
from lance_engine.errors import ColumnNotFoundError, InvalidSearchError
from lance_engine.scan import ScanSplit
from pyspark.sql import DataFrame, SparkSession

from lance_sql.spark.cluster import run_tasks
from lance_sql.spark.options import Options
from lance_sql.spark.partitions import plan_splits
from lance_sql.spark.tables import option_texts
from lance_sql.spark.types import spark_schema, to_spark
from lance_sql.spark.versions import PANDAS_WARNING, arrow_schema

#: A column of results, after those of the dataset.
DISTANCE: Final = pa.field("_distance", pa.float32(), nullable=False)


@public
def vector_search(
    spark: SparkSession,
    path: str | PathLike[str],
    column: str,
    query: Any,
    k: int = 10,
    metric: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    filter: str | None = None,
    lower: float | None = None,
    upper: float | None = None,
    with_row_id: bool = False,
    use_index: bool = True,
    location: dict[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """The rows whose vectors are nearest to `query`, as in `Dataset.nearest`, nearest first.

    Without an index, each task compares the vectors of some of the rows. The driver searches indices, which
    takes about as long as starting a task. `location` is ``version``, ``tag``, ``branch`` and
    ``storage_options``. `k`, `metric`, `lower`, `upper`, `with_row_id`, `use_index` and other `options` are
    those of `Dataset.nearest`.
    """
    from lance_engine.search import check_nearest, has_index, nearest_among, nearest_table

    at = _options(path, location)
    dataset = at.open()
    at = at.at(dataset)
    given = {"columns": columns, "filter": filter, "lower": lower, "upper": upper, **options}
    check_nearest(dataset.snapshot, column, query, k, metric, use_index=use_index, **given)
    if use_index and has_index(dataset.snapshot, column, metric):
        return _frame(spark, dataset.nearest(column, query, k, metric, with_row_id=with_row_id, **given))
    shares = plan_splits(dataset, dataclasses.replace(at, filter=filter)).partitions
    rows = [sum(split.stop - split.start for split in splits) for splits in shares]

    def work(splits: list[ScanSplit]) -> Any:
        here = at.open()
        return nearest_among(
            here.snapshot,
            here._reader,
            column,
            query,
            k,
            metric,
            splits=splits,
            filter=filter,
            lower=lower,
            upper=upper,
        )

    nearest = run_tasks(spark, shares, work, Reporter(None), "searching", rows)
    table = nearest_table(
        dataset.snapshot, dataset._reader, column, query, k, nearest, columns, metric, with_row_id
    )
    return _frame(spark, table)


@public
def search(
    spark: SparkSession,
    path: str | PathLike[str],
    query: Any,
    column: str | Sequence[str] | None = None,
    k: int | None = 10,
    *,
    location: dict[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """The rows whose texts match `query` best, as in `Dataset.search` on the driver, best first.

    At most `k` rows, or all for None; the other `options` are those of `Dataset.search`.
    The scores depend on word frequencies in all rows, so tasks would not help.
    """
    return _frame(spark, _options(path, location).open().search(query, column, k, **options))


@public
def nearest_join(
    left: DataFrame,
    path: str | PathLike[str],
    column: str,
    left_column: str,
    k: int = 10,
    metric: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    location: dict[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Each row of `left` with the `k` rows of the dataset whose vectors are nearest to its `left_column`.

    The result has the columns of `left`, `columns` of the dataset (all by default) with names prefixed by
    `prefix`, and ``_distance``. Rows of `left` without a vector are left out. Each task searches for all
    vectors of its rows at once. `metric` and other `options` are those of `Dataset.nearest`.
    """
    at = _options(path, location)
    dataset = at.open()
    at = at.at(dataset)
    names = list(dataset.schema.names if columns is None else columns)
    missing = [name for name in names if name not in dataset.schema.names]
    if missing:
        raise ColumnNotFoundError(f"Column '{missing[0]}' not found in the dataset", path=dataset.uri)
    fields = [dataset.storage_schema.field(name).with_name(prefix + name) for name in names]
    taken = {*left.columns, DISTANCE.name} & {field.name for field in fields}
    if taken or DISTANCE.name in left.columns:
        raise InvalidSearchError(
            f"Both sides have a column '{min(taken or {DISTANCE.name})}'",
            remedy="Rename it, select others with columns=, or pass prefix= for the columns of the dataset",
        )
    added = spark_schema(pa.schema([*fields, DISTANCE]))
    schema = type(left.schema)([*left.schema.fields, *added.fields])
    declared = arrow_schema(schema)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = at.open()
        for batch in batches:
            vectors = batch.column(left_column)
            present = np.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
            if not len(present):
                continue
            queries = np.asarray(vectors.take(pa.array(present)).to_pylist())
            neighbours = here.nearest(column, queries, k, metric, columns=["query_index", *names], **options)
            rows = batch.take(pa.array(present[neighbours["query_index"].to_numpy()]))
            arrays = [*rows.columns]
            arrays += [neighbours[name].combine_chunks() for name in [*names, DISTANCE.name]]
            yield to_spark(pa.RecordBatch.from_arrays(arrays, names=declared.names), declared)

    with warnings.catch_warnings():  # PySpark warns about pandas, which is not used for Arrow batches
        warnings.filterwarnings("ignore", message=PANDAS_WARNING)
        return left.mapInArrow(work, schema)


def _options(path: str | PathLike[str], location: dict[str, Any] | None) -> Options:
    return Options.parse({**option_texts(location or {}), "path": fspath(path)})


def _frame(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A result as a DataFrame."""
    schema = spark_schema(table.schema)
    declared = arrow_schema(schema)
    batches = [to_spark(batch, declared) for batch in table.combine_chunks().to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches, declared), schema)
