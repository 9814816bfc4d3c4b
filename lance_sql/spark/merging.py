"""Upsert from a DataFrame: Spark joins it with the keys of the dataset, tasks write, the driver commits."""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from os import PathLike
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from lance_engine.base import ProgressOption, Reporter, Schema, public
from lance_engine.errors import InvalidArgumentError, SchemaMismatchError
from lance_engine.operations import redo_on_conflict
from lance_engine.scan import ROW_ADDRESS
from lance_engine.table import Snapshot
from lance_engine.write import check_compatible
from pyspark.sql import DataFrame, SparkSession

from lance_sql.dataset import Dataset
from lance_sql.spark.cluster import tagged_files, watched
from lance_sql.spark.options import Options
from lance_sql.spark.row_changes import DELETE, INSERT, UPDATE, commit_changes, write_changes
from lance_sql.spark.session import ensure_registered
from lance_sql.spark.tables import option_texts
from lance_sql.spark.types import check_fits
from lance_sql.spark.versions import PANDAS_WARNING, arrow_schema

_ADDRESS: Final = "_lance_address"
_KEY: Final = "_lance_key_"


@public
def merge(
    spark: SparkSession,
    frame: DataFrame,
    path: str | PathLike[str],
    on: str | Sequence[str],
    *,
    matched: Literal["update", "delete", "ignore"] = "update",
    not_matched: Literal["insert", "ignore"] = "insert",
    progress: ProgressOption = None,
    **location: Any,
) -> Dataset:
    """Update rows of the dataset whose key is in `frame`, and insert the other rows of `frame`.

    `on` names the key columns. `matched` says what happens to rows with the same key (``update``, ``delete``
    or ``ignore``), and `not_matched` to the other rows of `frame` (``insert`` or ``ignore``).
    Same as `Dataset.merge` with ``when_matched_update_all`` and ``when_not_matched_insert_all``: columns
    missing in `frame` keep their values in matched rows and are null in new ones; a null in a key matches
    nothing; AmbiguousMergeError if several rows of `frame` match the same row. `frame` is computed once, and
    again if another writer committed first. `location` is ``branch`` and ``storage_options``.
    """
    if matched not in ("update", "delete", "ignore") or not_matched not in ("insert", "ignore"):
        raise InvalidArgumentError(
            'matched must be "update", "delete" or "ignore", not_matched "insert" or "ignore"'
        )
    ensure_registered(spark)
    keys = [on] if isinstance(on, str) else list(on)
    options = Options.parse({**option_texts(location), "path": str(path)})

    def once(snapshot: Snapshot) -> Snapshot:
        _check(frame, keys, snapshot)
        at = dataclasses.replace(options, version=snapshot.version)
        pairs = _joined(spark, frame, keys, at)
        with tagged_files(snapshot.store) as tag:

            def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                changes = _changes(batches, matched, not_matched)
                written = write_changes(changes, at.open().snapshot, tag)
                yield pa.record_batch({"written": pa.array([pickle.dumps(written)], pa.large_binary())})

            with warnings.catch_warnings():
                # Spark imports pandas here and warns about version 3, which is not used.
                warnings.filterwarnings("ignore", PANDAS_WARNING, FutureWarning)
                written = pairs.mapInArrow(work, "written binary")
            reporter = Reporter(progress)
            reporter.begin("merging rows")
            rows = watched(
                spark,
                written.collect,
                "lance: merging rows",
                lambda: reporter.update(0, None),
            )
            reporter.end()
            changes = [pickle.loads(row.written) for row in rows]
            return commit_changes(snapshot, frame.columns, changes)

    return Dataset(redo_on_conflict(options.open().snapshot, once))


def _check(frame: DataFrame, keys: Sequence[str], snapshot: Snapshot) -> None:
    """SchemaMismatchError unless the rows of `frame` can be converted to rows of the dataset."""
    schema = arrow_schema(frame.schema)
    for key in keys:
        if key not in schema.names:
            raise SchemaMismatchError(f"The source has no key column '{key}'", column=key)
    check_compatible(schema, snapshot.schema.to_arrow())
    check_fits(schema, Schema(tuple(snapshot.schema.field(name) for name in schema.names)))


def _joined(spark: SparkSession, frame: DataFrame, keys: Sequence[str], at: Options) -> DataFrame:
    """The rows of `frame` with the addresses of the rows that match, null first, ascending in each task."""
    texts = option_texts(
        {
            "path": at.path,
            "version": at.version,
            "branch": at.branch,
            "storage_options": at.storage_options,
            "columns": [*keys, ROW_ADDRESS],
        }
    )
    target = spark.read.format("lance").options(**texts).load()
    target = target.toDF(*(f"{_KEY}{number}" for number in range(len(keys))), _ADDRESS)
    condition = reduce(
        lambda left, right: left & right,
        (frame[key] == target[f"{_KEY}{number}"] for number, key in enumerate(keys)),
    )
    pairs = frame.join(target, condition, "left").select(*(frame[name] for name in frame.columns), _ADDRESS)
    return pairs.sortWithinPartitions(_ADDRESS)


def _changes(pairs: Iterable[pa.RecordBatch], matched: str, not_matched: str) -> Iterator[pa.RecordBatch]:
    """Pairs of a source row and the address that it matches, null first, as changes of rows."""
    for batch in pairs:
        addresses = batch.column(batch.num_columns - 1)
        new = addresses.null_count
        start = 0 if not_matched == "insert" else new
        stop = new if matched == "ignore" else batch.num_rows
        change = DELETE if matched == "delete" else UPDATE
        operations = np.where(np.arange(batch.num_rows) < new, INSERT, change)
        columns = [pa.array(operations), addresses, *batch.columns[:-1]]
        names = ["operation", "address", *batch.schema.names[:-1]]
        yield pa.RecordBatch.from_arrays(columns, names).slice(start, stop - start)
