"""The writer for ``ADD COLUMNS ... FROM view`` and ``UPDATE COLUMNS ... FROM view``, of whole columns.

ViewColumns.java sends each task the rows of whole fragments, ordered by the address of the row. Only these
columns are written, so that no row moves.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from lance_engine.base import Reporter, Schema
from lance_engine.errors import CommitConflictError
from lance_engine.operations import (
    check_whole_columns,
    commit_change,
    with_columns,
    write_columns,
    write_options,
)
from lance_engine.scan import ROW_ADDRESS
from lance_engine.table import (
    DataReplacement,
    Fragment,
    Merge,
    Snapshot,
    fragment_from_bytes,
    fragment_to_bytes,
)
from lance_engine.write import check_writable, data_paths
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_sql.spark.job_files import JobFiles
from lance_sql.spark.options import Options
from lance_sql.spark.row_changes import ambiguous
from lance_sql.spark.types import check_fits, check_storable, stored_schema
from lance_sql.spark.versions import arrow_schema


@dataclasses.dataclass
class WrittenColumns(WriterCommitMessage):
    """Output of one task: fragments of the dataset as bytes, each with only its new file."""

    fragments: list[bytes]


class ColumnsWriter(DataSourceArrowWriter):
    """One statement: created on the driver and sent to every task; the driver then commits or aborts."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = dataclasses.replace(options, version=options.changed_version, tag=None, as_of=None)
        snapshot = self._options.open().snapshot
        self._files = JobFiles(options, snapshot.version)
        self._adds = options.changed_columns == "add"
        columns = StructType(schema.fields[1:])
        check_storable(columns)
        if self._adds:
            nullable = [field.with_nullable(True) for field in stored_schema(columns)]
            self._columns, self._schema = with_columns(snapshot, pa.schema(nullable))
            check_writable(self._columns, write_options(snapshot).version)
        else:
            check_whole_columns(snapshot.schema, dict.fromkeys(columns.names, ""))
            self._schema = snapshot.schema
            self._columns = Schema(tuple(snapshot.schema.field(name) for name in columns.names))
            check_fits(arrow_schema(columns), self._columns)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WrittenColumns:
        snapshot = self._options.open().snapshot
        fragments = {fragment.id: fragment for fragment in snapshot.fragments}
        written = []
        for fragment_id, rows in _by_fragment(iterator):
            fragment = fragments.get(fragment_id)
            if fragment is None:
                raise CommitConflictError(
                    "Rows of the view have addresses that the table does not have",
                    path=snapshot.uri,
                    version=snapshot.version,
                    remedy="Create the view again, from the current version of the table",
                )
            file = self._file(snapshot, fragment, rows)
            written.append(fragment_to_bytes(dataclasses.replace(fragment, files=(file,))))
        return WrittenColumns(written)

    def _file(self, snapshot: Snapshot, fragment: Fragment, rows: pa.Table):  # type: ignore[no-untyped-def]
        addresses = rows.column(0).to_numpy().astype(np.uint64)
        if (addresses[1:] == addresses[:-1]).any():
            raise ambiguous(snapshot.uri)
        target = self._columns.to_arrow()
        given = [
            column.combine_chunks().cast(field.type)
            for column, field in zip(rows.columns[1:], target, strict=True)
        ]

        def compute(batch: pa.RecordBatch) -> pa.RecordBatch:
            here = batch.column(batch.num_columns - 1).to_numpy().astype(np.uint64)
            places = np.minimum(np.searchsorted(addresses, here), len(addresses) - 1)
            matched = addresses[places] == here
            if self._adds:
                taken = [column.take(pa.array(places, mask=~matched)) for column in given]
            else:
                chosen = pa.array(np.where(matched, len(here) + places, np.arange(len(here))))
                taken = [
                    pa.concat_arrays([old.cast(new.type), new]).take(chosen)
                    for old, new in zip(batch.columns[:-1], given, strict=True)
                ]
            return pa.RecordBatch.from_arrays(taken, schema=target)

        read = [] if self._adds else self._columns.names
        (file,) = write_columns(
            snapshot,
            self._columns,
            [*read, ROW_ADDRESS],
            compute,
            Reporter(None),
            fragments=[fragment],
            file_tag=self._files.tag,
        )
        return file

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        snapshot = self._options.open().snapshot
        written = [
            fragment_from_bytes(data)
            for message in messages
            if isinstance(message, WrittenColumns)
            for data in message.fragments
        ]
        files = {fragment.id: fragment.files[0] for fragment in written}
        operation: Merge | DataReplacement
        if self._adds:
            fragments = tuple(
                dataclasses.replace(fragment, files=(*fragment.files, files[fragment.id]))
                if fragment.id in files
                else fragment
                for fragment in snapshot.fragments
            )
            operation = Merge(fragments, self._schema, preserves_nullability=True)
        else:
            operation = DataReplacement(tuple(files.items()))
        if files or self._adds:
            commit_change(snapshot, operation, data_paths(written))
        self._files.remove_duplicates(set(data_paths(written)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._files.discard()


def _by_fragment(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """The rows of each fragment; they come together, ordered by address."""
    waiting: list[pa.RecordBatch] = []
    current = -1
    for batch in batches:
        if batch.num_rows == 0:
            continue
        ids = batch.column(0).to_numpy().astype(np.uint64) >> np.uint64(32)
        starts = [0, *(np.flatnonzero(np.diff(ids)) + 1).tolist(), batch.num_rows]
        for start, stop in itertools.pairwise(starts):
            if ids[start] != current and waiting:
                yield current, pa.Table.from_batches(waiting)
                waiting = []
            current = int(ids[start])
            waiting.append(batch.slice(start, stop - start))
    if waiting:
        yield current, pa.Table.from_batches(waiting)
