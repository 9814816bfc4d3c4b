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
from lance_engine.distinct import distinct
from lance_engine.errors import AmbiguousMergeError, SchemaMismatchError
from lance_engine.format.fragment import fragment_from_bytes, fragment_to_bytes
from lance_engine.operations.changes import write_options
from lance_engine.operations.retry import redo_on_conflict
from lance_engine.operations.rows import joined, read_rows, shared_readers
from lance_engine.operations.update import commit_moved
from lance_engine.progress import ProgressOption, Reporter
from lance_engine.scan.system import ROW_ADDRESS
from lance_engine.schema_tree import Schema
from lance_engine.table.snapshot import Snapshot, U64Array
from lance_engine.write.fragments import write_fragments
from lance_engine.write.source import check_compatible, conform
from pyspark.sql import DataFrame, SparkSession

from lance_sql.dataset import Dataset
from lance_sql.spark.cluster import tagged_files, watched
from lance_sql.spark.options import Options
from lance_sql.spark.session import ensure_registered
from lance_sql.spark.tables import option_texts
from lance_sql.spark.versions import arrow_schema

_ADDRESS: Final = "_lance_address"
_KEY: Final = "_lance_key_"


@dataclasses.dataclass(frozen=True)
class _Written:
    """What one task did: ascending addresses of matched rows, and new fragments as bytes."""

    addresses: U64Array
    moved: list[bytes]
    inserted: list[bytes]


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
    """Update rows of the dataset that have the key of a row of `frame`, and insert the other rows of it.

    As `Dataset.merge` with ``when_matched_update_all`` and ``when_not_matched_insert_all``: columns that
    `frame` lacks keep their values in matched rows and are null in new ones; a null in a key matches nothing;
    AmbiguousMergeError if several rows of `frame` match the same row. `frame` is computed once, and again if
    another writer was faster. `location` is ``branch`` and ``storage_options``.
    """
    if matched not in ("update", "delete", "ignore") or not_matched not in ("insert", "ignore"):
        raise ValueError('matched must be "update", "delete" or "ignore", not_matched "insert" or "ignore"')
    ensure_registered(spark)
    keys = [on] if isinstance(on, str) else list(on)
    options = Options.parse({**option_texts(location), "path": str(path)})

    def once(snapshot: Snapshot) -> Snapshot:
        _check(frame, keys, snapshot)
        at = dataclasses.replace(options, version=snapshot.version)
        pairs = _joined(spark, frame, keys, at)
        with tagged_files(snapshot.store) as tag:

            def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                written = _write(batches, at, tag, matched, not_matched)
                yield pa.record_batch({"written": pa.array([pickle.dumps(written)], pa.large_binary())})

            with warnings.catch_warnings():
                # Spark asks for pandas here and warns of its version 3, which has no part in this.
                warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
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
            parts: list[_Written] = [pickle.loads(row.written) for row in rows]
            return _commit(snapshot, frame.columns, parts, matched)

    return Dataset(redo_on_conflict(options.open().snapshot, once))


def _check(frame: DataFrame, keys: Sequence[str], snapshot: Snapshot) -> None:
    """SchemaMismatchError unless the rows of `frame` can become rows of the dataset."""
    schema = arrow_schema(frame.schema)
    for key in keys:
        if key not in schema.names:
            raise SchemaMismatchError(f"The source has no column '{key}' to merge by", column=key)
    check_compatible(schema, snapshot.schema.to_arrow())
    kept = Schema(tuple(snapshot.schema.field(name) for name in schema.names))
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    for _ in conform([empty], kept):
        pass


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


def _write(
    batches: Iterable[pa.RecordBatch], at: Options, tag: str, matched: str, not_matched: str
) -> _Written:
    """In a task: write the rows that match nothing, which come first, then those that match."""
    snapshot = at.open().snapshot
    schema = snapshot.schema
    reader_for = shared_readers(snapshot)
    limits = dataclasses.replace(write_options(snapshot), file_tag=tag)
    addresses: list[U64Array] = []
    rest: list[pa.RecordBatch] = []
    source = iter(batches)

    def new_rows() -> Iterator[pa.RecordBatch]:
        for batch in source:
            place = batch.column(batch.num_columns - 1)
            unmatched = place.null_count
            if unmatched and not_matched == "insert":
                yield batch.slice(0, unmatched).drop_columns([_ADDRESS])
            if unmatched < batch.num_rows:
                rest.append(batch.slice(unmatched))
                return

    def moved_rows() -> Iterator[pa.RecordBatch]:
        while rest:
            batch = rest.pop()
            here = batch.column(batch.num_columns - 1).to_numpy().astype(np.uint64)
            if matched == "update" and (here[1:] == here[:-1]).any():
                raise _ambiguous(at.path)
            if matched != "ignore":
                addresses.append(here)
            if matched == "update":
                values = batch.drop_columns([_ADDRESS])
                yield _with_kept(snapshot, values, here, reader_for)
            rest.extend(following for following in [next(source, None)] if following is not None)

    inserted = write_fragments(snapshot.store, schema, new_rows(), limits)
    moved = write_fragments(snapshot.store, schema, moved_rows(), limits)
    return _Written(
        joined(addresses),
        [fragment_to_bytes(fragment) for fragment in moved],
        [fragment_to_bytes(fragment) for fragment in inserted],
    )


def _with_kept(
    snapshot: Snapshot, values: pa.RecordBatch, addresses: U64Array, reader_for: Any
) -> pa.RecordBatch:
    """The new values, with the columns of the dataset that they lack as they were."""
    kept = [name for name in snapshot.schema.names if name not in values.schema.names]
    if not kept:
        return values
    old = read_rows(snapshot, addresses, kept, reader_for)
    return pa.RecordBatch.from_arrays(
        [*values.columns, *old.columns], schema=pa.schema([*values.schema, *old.schema])
    )


def _commit(snapshot: Snapshot, columns: Sequence[str], parts: Sequence[_Written], matched: str) -> Snapshot:
    addresses = joined(part.addresses for part in parts)
    once = distinct(addresses)
    if matched == "update" and len(once) != len(addresses):
        raise _ambiguous(snapshot.uri)
    fragments = [fragment_from_bytes(data) for part in parts for data in part.moved]
    inserted = [fragment_from_bytes(data) for part in parts for data in part.inserted]
    if not len(addresses) and not inserted:
        return snapshot
    updates = matched == "update"
    return commit_moved(
        snapshot,
        columns if updates else (),
        [part.addresses for part in parts] if updates else [],
        [*fragments, *inserted],
        deleted=None if updates else once,
        inserts_keys=bool(inserted),
    )


def _ambiguous(path: str) -> AmbiguousMergeError:
    return AmbiguousMergeError(
        "Several rows of the source match the same row of the dataset",
        path=path,
        remedy="Keep one row per key in the source",
    )
