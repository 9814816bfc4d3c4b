"""Writing: every Spark task writes fragments; the driver commits all at once or removes what was written."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
from lance_engine.errors import DatasetNotFoundError
from lance_engine.format.fragment import fragment_from_bytes, fragment_to_bytes
from lance_engine.format.transaction import Append, Overwrite
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot
from lance_engine.types import Schema
from lance_engine.write.check import check_writable
from lance_engine.write.dataset import storage_version_for
from lance_engine.write.fragments import DATA_FOLDER, write_fragments
from lance_engine.write.options import WriteOptions
from lance_engine.write.source import check_compatible
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_sql.spark.options import Options
from lance_sql.spark.types import arrow_schema, stored_schema

# A task that was told to stop has stopped when no file of its job turned up for so long.
QUIET_SECONDS = 3.0
SECONDS_BETWEEN_LOOKS = 0.2
MAX_ABORT_SECONDS = 20.0


@dataclasses.dataclass
class WrittenFragments(WriterCommitMessage):
    """What one task wrote: serialised fragments without numbers, which the commit assigns."""

    fragments: list[bytes]


class LanceWriter(DataSourceArrowWriter):
    """One write job. Made on the driver, sent to every task, used again on the driver to commit or abort."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._job = uuid.uuid4().hex
        existing = self._latest()
        extended = None if overwrite else existing
        self._read_version = existing.version if existing else 0
        self._replaces = extended is None
        self._schema = extended.schema if extended else Schema.from_arrow(stored_schema(schema))
        self._storage_version = storage_version_for(options.data_storage_version, extended)
        # What cannot be stored is refused here, before any task runs.
        check_compatible(arrow_schema(schema), self._schema.to_arrow())
        check_writable(self._schema, self._write_options().version)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenFragments:
        """In a task: stream the batches into data files. A failing task leaves no file behind."""
        fragments = write_fragments(self._store(), self._schema, iterator, self._write_options())
        return WrittenFragments([fragment_to_bytes(fragment) for fragment in fragments])

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver: publish the fragments of all tasks as one version."""
        written = (message.fragments for message in messages if isinstance(message, WrittenFragments))
        fragments = tuple(fragment_from_bytes(data) for task in written for data in task)
        if self._replaces:
            options = CreateOptions(storage_version=self._storage_version)
            operation = Overwrite(fragments, self._schema)
            commit(self._store(), operation, read_version=self._read_version, options=options)
        elif fragments:
            commit(self._store(), Append(fragments), read_version=self._read_version)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """On the driver: remove whatever the tasks of this job wrote.

        Spark aborts while tasks that it just told to stop may still be finishing a file, so this looks again
        until none has turned up for a while. It also aborts when the commit failed: should a version refer to
        the files after all, they stay.
        """
        if self._is_committed():
            return
        began = last_found = time.monotonic()
        while time.monotonic() - last_found < QUIET_SECONDS and time.monotonic() - began < MAX_ABORT_SECONDS:
            if self._remove_files():
                last_found = time.monotonic()
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def _is_committed(self) -> bool:
        latest = self._latest()
        if latest is None:
            return False
        newer = range(self._read_version + 1, latest.version + 1)
        return any(
            self._job in file.path
            for version in newer
            for fragment in open_snapshot(self._store(), version).fragments
            for file in fragment.files
        )

    def _remove_files(self) -> bool:
        """Remove the files of this job; whether there were any."""
        store = self._store()
        paths = [path for path in store.list(DATA_FOLDER) if self._job in path]
        for path in paths:
            store.delete(path)
        return bool(paths)

    def _store(self) -> Store:
        return open_store(self._options.path, self._options.storage_options)

    def _latest(self) -> Snapshot | None:
        try:
            return open_snapshot(self._store())
        except DatasetNotFoundError:
            return None

    def _write_options(self) -> WriteOptions:
        return WriteOptions(
            data_storage_version=self._storage_version,
            max_rows_per_file=self._options.max_rows_per_file,
            max_bytes_per_file=self._options.max_bytes_per_file,
            file_tag=self._job,
        )
