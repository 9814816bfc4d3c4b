"""Structured Streaming: a sink that commits every batch once, a source of the rows that versions append.

Spark defines the names of methods and arguments.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import IncompatibleChangeError, VersionNotFoundError
from lance_engine.inspection import read_transaction
from lance_engine.io import Store, delete_quietly
from lance_engine.scan import ScanSplit
from lance_engine.table import OperationKind, Transaction, list_versions, read_version
from lance_engine.write import data_paths
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lance_sql.spark.job import WriteJob, WrittenFragments, fragments_of
from lance_sql.spark.options import InvalidOptionError, Options
from lance_sql.spark.partitions import partition_splits
from lance_sql.spark.reader import SplitPartition, read_splits, require_columns
from lance_sql.spark.versions import StreamArrowWriter, SupportsTriggerAvailableNow

#: Transaction properties of a batch.
STREAM: Final = "lance_sql.stream"
BATCH: Final = "lance_sql.batch"
_NAMESPACE: Final = uuid.UUID("2f0c1b1c-6a53-4f0e-9a8c-0c5a4a1d6c57")

# Operations that do not change rows or their values.
_NEUTRAL: Final = frozenset(
    {
        OperationKind.REWRITE,
        OperationKind.RESERVE_FRAGMENTS,
        OperationKind.CREATE_INDEX,
        OperationKind.UPDATE_CONFIG,
        OperationKind.PROJECT,
    }
)


class LanceStreamWriter(StreamArrowWriter):
    """The sink. A batch that Spark repeats after a crash is not committed again."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        name = options.stream_id or options.checkpoint_location
        if name is None:
            raise InvalidOptionError(
                "A stream needs the option 'stream_id' or 'checkpointLocation', which identifies its batches"
            )
        self._name = name
        self.schema = schema
        self._overwrite = overwrite
        self._job = WriteJob(options, schema, overwrite)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        return self._job.write(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        store = self._job.options.store()
        fragments = fragments_of(messages)
        if is_committed(store, self._name, batchId):
            delete_quietly(store, data_paths(fragments))
            return
        latest = self._job.options.latest()
        replaces = self._overwrite or latest is None
        if latest is not None and not replaces:
            self._job.require_same_schema(latest)
        if latest is not None and replaces:
            self._job.require_kept_schema(latest)
        if latest is not None and not replaces and not fragments:
            return
        committed = self._job.publish(
            messages,
            replaces=replaces,
            read_version=0 if latest is None else latest.version,
            transaction_id=str(uuid.uuid5(_NAMESPACE, f"{self._name}\n{batchId}")),
            properties={STREAM: self._name, BATCH: str(batchId)},
        )
        assert committed is not None
        held = {file.path for fragment in committed.fragments for file in fragment.files}
        if not all(file.path in held for fragment in fragments for file in fragment.files):
            delete_quietly(store, data_paths(fragments))  # the same batch, committed by a lost driver

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        store = self._job.options.store()
        if not is_committed(store, self._name, batchId):
            delete_quietly(store, data_paths(fragments_of(messages)))


def is_committed(store: Store, stream: str, batch: int) -> bool:
    """Whether a version of the dataset contains this batch of a stream, by transaction properties."""
    versions = list_versions(store)
    for version in reversed(versions.versions if versions is not None else ()):
        assert versions is not None
        transaction = _transaction(store, versions.path(version), version)
        if transaction is not None and transaction.properties.get(STREAM) == stream:
            # Batches are committed in ascending order.
            return int(transaction.properties[BATCH]) >= batch
    return False


def _transaction(store: Store, path: str, version: int) -> Transaction | None:
    try:
        return read_transaction(store, read_version(store, path, version))
    except FileNotFoundError:
        return None  # cleaned up since it was listed


class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The source. An offset is a version: a batch has the rows appended between two offsets.

    The first batch is the whole dataset, or starts after the option ``start_version``.
    """

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._last: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._last = self._options.open().version

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"version": self._options.start_version or 0}

    def latestOffset(self, start: dict[str, int] | None = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        latest = self._options.open().version if self._last is None else self._last
        step = self._options.versions_per_batch
        if step is not None and start is None:
            raise InvalidOptionError("The option 'versions_per_batch' needs Spark 4.2 or newer")
        return {"version": latest if step is None or start is None else min(latest, start["version"] + step)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        begin, stop = start["version"], end["version"]
        if begin == stop:
            return []
        if begin == 0:
            return self._partitions(self._at(stop), None)
        return [part for version in range(begin + 1, stop + 1) for part in self._appended(version)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, SplitPartition):
            yield from read_splits(self._options, self._schema, partition)

    def commit(self, end: dict[str, int]) -> None:
        pass

    def stop(self) -> None:
        pass

    def _appended(self, version: int) -> list[InputPartition]:
        """The partitions of the rows that a version appended."""
        store = self._options.store()
        versions = list_versions(store)
        assert versions is not None
        transaction = _transaction(store, versions.path(version), version)
        kind = None if transaction is None else transaction.operation.kind
        if kind in _NEUTRAL:
            return []
        dataset = self._at(version)
        if kind is OperationKind.APPEND or (kind is OperationKind.OVERWRITE and version == 1):
            before = frozenset[int]()
            if version > 1:
                before = frozenset(fragment.id for fragment in self._at(version - 1).snapshot.fragments)
            return self._partitions(dataset, before)
        if kind is OperationKind.MERGE:
            return []  # columns were added: earlier rows are not sent again
        if self._options.ignore_changes:
            return []
        raise IncompatibleChangeError(
            f"Version {version} is not an append but '{kind.value if kind else 'unknown'}', which a "
            f"stream of appended rows cannot represent",
            path=dataset.uri,
            version=version,
            remedy="Start a new stream, or skip such versions with the option ignore_changes=true",
        )

    def _partitions(self, dataset: DatasetVersion, before: frozenset[int] | None) -> list[InputPartition]:
        require_columns(dataset, self._schema, self._options.path)
        fragments = [f for f in dataset.snapshot.fragments if before is None or f.id not in before]
        splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in fragments]
        partitions = partition_splits(
            dataset.snapshot, splits, self._options.partition_bytes, self._options.partitions
        )
        return [SplitPartition(splits, dataset.version) for splits in partitions]

    def _at(self, version: int) -> DatasetVersion:
        try:
            return DatasetVersion.open(
                self._options.path,
                version,
                branch=self._options.branch,
                storage_options=self._options.storage_options,
            )
        except VersionNotFoundError as error:
            raise VersionNotFoundError(
                f"{error.message}; the stream has not read it yet",
                path=self._options.path,
                version=version,
                remedy="Start a new stream, and keep versions for longer than a stream may be stopped",
            ) from error
