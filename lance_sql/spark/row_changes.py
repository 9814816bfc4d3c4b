"""Changes of single rows: tasks write the changed rows, and the driver commits them as one version."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from lance_engine.base import distinct_numbers, values_as_python
from lance_engine.errors import AmbiguousMergeError, LanceError, SchemaMismatchError
from lance_engine.operations import (
    commit_moved,
    delete_rows,
    joined,
    read_rows,
    write_options,
)
from lance_engine.scan import shared_readers
from lance_engine.table import Snapshot, U64Array, fragment_from_bytes, fragment_to_bytes
from lance_engine.write import write_fragments
from pyspark.sql.datasource import WriterCommitMessage

#: The operation on a row, as in RowChangesWriter.java.
DELETE: Final = 1
UPDATE: Final = 2
INSERT: Final = 3

#: The first two columns of changes: the operation, and the address of the old row, null for new rows.
LEADING_COLUMNS: Final = 2


@dataclasses.dataclass
class WrittenChanges(WriterCommitMessage):
    """Output of one task: ascending addresses of changed or deleted rows, and new fragments as bytes."""

    moved_from: U64Array
    deleted: U64Array
    moved: list[bytes]
    inserted: list[bytes]


def write_changes(batches: Iterable[pa.RecordBatch], snapshot: Snapshot, tag: str) -> WrittenChanges:
    """In a task: write the new rows, which come first, and the changed ones, by address.

    Columns of the dataset that are missing in the batches keep their values in changed rows.
    """
    return _TaskChanges(snapshot, batches).write(tag)


def commit_changes(
    snapshot: Snapshot, modified: Sequence[str], written: Sequence[WrittenChanges], predicate: str = ""
) -> Snapshot:
    """Commit the changes of all tasks as one version; returns `snapshot` without changes."""
    moved = [task.moved_from for task in written]
    deleted = distinct_numbers(joined(task.deleted for task in written))
    changed = joined([*moved, deleted])
    if len(distinct_numbers(changed)) != len(changed):
        raise ambiguous(snapshot.uri)
    fragments = [fragment_from_bytes(data) for task in written for data in task.moved]
    inserted = [fragment_from_bytes(data) for task in written for data in task.inserted]
    if not fragments and not inserted:
        return delete_rows(snapshot, deleted, predicate) if len(deleted) else snapshot
    return commit_moved(
        snapshot,
        modified if fragments else (),
        moved,
        [*fragments, *inserted],
        deleted=deleted,
        inserts_keys=bool(inserted),
        inserts_rows=bool(inserted),
    )


def ambiguous(path: str) -> AmbiguousMergeError:
    """The error for several changes of one row."""
    return AmbiguousMergeError(
        "Several source rows match the same row of the dataset",
        path=path,
        remedy="Deduplicate the source by key",
    )


class _TaskChanges:
    def __init__(self, snapshot: Snapshot, batches: Iterable[pa.RecordBatch]) -> None:
        self._snapshot = snapshot
        self._stored = snapshot.schema.to_arrow()
        self._reader_for = shared_readers(snapshot)
        self._source = iter(batches)
        self._waiting: list[pa.RecordBatch] = []  # the rows after the new ones
        self._last = -1
        self._last_updates = False
        self._moved_from: list[U64Array] = []
        self._deleted: list[U64Array] = []

    def write(self, tag: str) -> WrittenChanges:
        store, schema = self._snapshot.store, self._snapshot.schema
        limits = dataclasses.replace(write_options(self._snapshot), file_tag=tag)
        inserted = write_fragments(store, schema, self._new_rows(), limits)
        moved = write_fragments(store, schema, self._changed_rows(), limits)
        return WrittenChanges(
            joined(self._moved_from),
            joined(self._deleted),
            [fragment_to_bytes(fragment) for fragment in moved],
            [fragment_to_bytes(fragment) for fragment in inserted],
        )

    def _new_rows(self) -> Iterator[pa.RecordBatch]:
        for batch in self._source:
            new = batch.column(1).null_count
            if new:
                yield _rows(batch.slice(0, new), self._stored)
            if new < batch.num_rows:
                self._waiting.append(batch.slice(new))
                return

    def _changed_rows(self) -> Iterator[pa.RecordBatch]:
        while self._waiting:
            batch = self._waiting.pop()
            updates = batch.column(0).to_numpy() == UPDATE
            addresses = self._checked(batch, updates)
            self._deleted.append(addresses[~updates])
            if updates.any():
                values = _rows(batch.filter(pa.array(updates)), self._stored)
                self._moved_from.append(addresses[updates])
                yield self._whole(values, addresses[updates])
            self._waiting.extend(
                following for following in [next(self._source, None)] if following is not None
            )

    def _checked(self, batch: pa.RecordBatch, updates: npt.NDArray[np.bool_]) -> U64Array:
        """The addresses, which must ascend; AmbiguousMergeError if a changed row occurs twice."""
        here = np.concatenate([[self._last], batch.column(1).to_numpy(zero_copy_only=False)]).astype(np.int64)
        steps = np.diff(here)
        if batch.column(1).null_count or (steps < 0).any():
            raise LanceError("Spark did not order the changes by row", path=self._snapshot.uri)
        changes = np.concatenate([[self._last_updates], updates])
        if ((steps == 0) & (changes[1:] | changes[:-1])).any():
            raise ambiguous(self._snapshot.uri)
        self._last, self._last_updates = int(here[-1]), bool(changes[-1])
        return here[1:].astype(np.uint64)

    def _whole(self, values: pa.RecordBatch, addresses: U64Array) -> pa.RecordBatch:
        """The rows with columns that were not given, and with the times that Spark rounds, as they were."""
        stored = self._stored
        kept = [name for name in stored.names if name not in values.schema.names]
        finer = [name for name in values.schema.names if _is_finer(stored.field(name).type)]
        if not kept and not finer:
            return values
        old = read_rows(self._snapshot, addresses, [*kept, *finer], self._reader_for)
        columns = dict(zip(values.schema, values.columns, strict=True))
        for name in finer:
            del columns[values.schema.field(name)]
            columns[stored.field(name)] = _restored(old.column(name), values.column(name), stored.field(name))
        columns |= {old.schema.field(name): old.column(name) for name in kept}
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(list(columns)))


def offered_types(offered: pa.Schema, stored: pa.Schema) -> pa.Schema:
    """The types in which rows are written: the stored types if Spark only supports wider ones."""
    return pa.schema(
        [
            field.with_type(stored.field(field.name).type)
            if field.name in stored.names and _is_wider_in_spark(stored.field(field.name).type)
            else field
            for field in offered
        ]
    )


def _is_wider_in_spark(kind: pa.DataType) -> bool:
    return bool(at.is_unsigned_integer(kind) or at.is_float16(kind))


def _rows(changes: pa.RecordBatch, stored: pa.Schema) -> pa.RecordBatch:
    rows = changes.select(range(LEADING_COLUMNS, changes.num_columns))
    target = offered_types(rows.schema, stored)
    columns = [
        column if column.type.equals(field.type) else _narrowed(column, field)
        for column, field in zip(rows.columns, target, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _narrowed(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"The new values do not fit {field.type} ({error})",
            column=field.name,
            remedy="Use values within its range",
        ) from error


def _is_finer(kind: pa.DataType) -> bool:
    """Whether Spark sees rounded values, such as nanoseconds as microseconds."""
    if at.is_nested(kind):
        return any(_is_finer(kind.field(number).type) for number in range(kind.num_fields))
    if at.is_dictionary(kind):
        return _is_finer(kind.value_type)
    return bool(at.is_date64(kind) or (at.is_temporal(kind) and getattr(kind, "unit", None) == "ns"))


def _restored(old: pa.Array, new: pa.Array, field: pa.Field) -> pa.Array:
    """The new values, except that old values which look the same to Spark are kept."""
    seen = pc.cast(old, options=pc.CastOptions(target_type=new.type, allow_time_truncate=True))
    if at.is_nested(new.type):
        # Compared as text, so that NaN equals itself.
        pairs = zip(values_as_python(seen), values_as_python(new), strict=True)
        same = np.array([repr(before) == repr(after) for before, after in pairs], dtype=bool)
    else:
        equal = pc.fill_null(pc.equal(seen, new), False)
        same = pc.or_(equal, pc.and_(seen.is_null(), new.is_null())).to_numpy(zero_copy_only=False)
    both = pa.concat_arrays([old, _narrowed(new, field)])
    numbers = np.arange(len(old))
    return both.take(pa.array(np.where(same, numbers, numbers + len(old))))
