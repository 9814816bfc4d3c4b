"""A scan: which columns of which rows, and its results as batches, a table, a reader or a count."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_engine import kernels
from lance_engine.errors import UnsupportedTypeError
from lance_engine.expr import Node, columns_of, evaluate, from_arrow, parse_sql
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.pool import num_threads, ordered_map
from lance_engine.scan.prune import Pruned, Pruner, RowRange
from lance_engine.scan.splits import ScanSplit, batch_ranges
from lance_engine.scan.system import SYSTEM_FIELDS
from lance_engine.scan.width import estimated_row_bytes

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot

# Rows of a batch unless the caller says otherwise; fewer where rows are wide.
DEFAULT_BATCH_ROWS = 1 << 17
TARGET_BATCH_BYTES = 32 << 20
# Decoded batches that may wait for a slow consumer.
READ_AHEAD_BYTES = 128 << 20
# A filter that keeps less than this share of a batch has the other columns read row by row.
SPARSE_SHARE = 1 / 16


class _Range(NamedTuple):
    reader: FragmentReader
    begin: int
    end: int
    tested: bool
    """Whether the filter has to be tested on these rows."""


class Scanner:
    """Rows of a snapshot in the order of their addresses. Every call of a result method scans anew."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        *,
        columns: Sequence[str] | None = None,
        filter: str | pc.Expression | Node | None = None,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        splits: Sequence[ScanSplit] | None = None,
        zone_maps: bool = True,
        dictionaries: Collection[str] = (),
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise ValueError("batch_size must be at least 1")
        if (limit is not None and limit < 0) or (offset is not None and offset < 0):
            raise ValueError("limit and offset must not be negative")
        self._snapshot = snapshot
        self._reader_for = reader_for
        self._names = tuple(snapshot.schema.names if columns is None else columns)
        self._coded = frozenset(dictionaries)
        self.schema = projected_schema(snapshot, self._names, self._coded)
        self._filter = _parse_filter(filter, snapshot)
        self._limit = limit
        self._offset = offset or 0
        self._splits = splits
        self._pruner = Pruner(self._filter, snapshot) if zone_maps and self._filter is not None else None
        self._filter_names = tuple(sorted(columns_of(self._filter))) if self._filter is not None else ()
        # Columns that are read only for rows that pass the filter.
        self._late_names = tuple(name for name in self._names if name not in self._filter_names)
        self._row_bytes = max(1, estimated_row_bytes(self.schema))
        self._batch_rows = batch_size or max(
            1024, min(DEFAULT_BATCH_ROWS, TARGET_BATCH_BYTES // self._row_bytes)
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches, none of them empty."""
        read_ahead = max(2, min(READ_AHEAD_BYTES // (self._row_bytes * self._batch_rows), 2 * num_threads()))
        if self._limit is not None:
            read_ahead = min(read_ahead, num_threads() + 1)
        skip, left = self._offset, self._limit
        if left == 0:
            return
        for batches in ordered_map(self._read, self._ranges(), read_ahead):
            for batch in batches:
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                kept = batch.slice(skip, left) if skip or left is not None else batch
                skip = 0
                yield kept
                if left is not None:
                    left -= kept.num_rows
                    if left == 0:
                        return

    def to_table(self) -> pa.Table:
        """The rows as one table."""
        return pa.Table.from_batches(self.to_batches(), schema=self.schema)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def count(self) -> int:
        """How many rows there are; without a filter known from metadata."""
        if self._filter is None and self._splits is None:
            rows = self._snapshot.num_rows
        else:
            rows = sum(ordered_map(self._count, self._ranges(), 2 * num_threads()))
        rows = max(0, rows - self._offset)
        return rows if self._limit is None else min(rows, self._limit)

    def explain(self) -> str:
        """What the scan reads, in words."""
        lines = [f"LanceScan {self._snapshot.uri} version {self._snapshot.version}"]
        lines.append(f"  columns: {', '.join(self._names) or '(none)'}")
        if self._filter is not None:
            lines.append(f"  filter: {self._filter}")
            lines.append(f"  read first: {', '.join(self._filter_names) or '(none)'}")
            lines.append(f"  read for matching rows: {', '.join(self._late_names) or '(none)'}")
        if self._limit is not None or self._offset:
            lines.append(f"  limit: {self._limit}, offset: {self._offset}")
        pruned = list(self._pruned())
        ranges = [(reader.fragment.id, rows) for reader, found in pruned for rows in found.ranges]
        fragments = len({fragment for fragment, _ in ranges})
        rows = sum(found.end - found.begin for _, found in ranges)
        if self._pruner is not None:
            zones, kept = (sum(getattr(found, name) for _, found in pruned) for name in ("zones", "kept"))
            untested = sum(found.end - found.begin for _, found in ranges if not found.tested)
            lines.append(f"  zones: {kept} of {zones}, rows that match without a test: {untested}")
        lines.append(f"  fragments: {fragments} of {len(self._snapshot.fragments)}, physical rows: {rows}")
        return "\n".join(lines)

    def _pruned(self) -> Iterator[tuple[FragmentReader, Pruned]]:
        """What is to be read of each split, zone maps considered."""
        splits = self._splits
        if splits is None:
            splits = [ScanSplit(f.id, 0, f.physical_rows) for f in self._snapshot.fragments]
        for split in splits:
            reader = self._reader_for(split.fragment_id)
            stop = min(split.stop, reader.rows)
            if self._pruner is not None:
                yield reader, self._pruner.prune(reader, split.start, stop, self._batch_rows // 4)
            else:
                yield reader, Pruned([RowRange(split.start, stop, self._filter is not None)], 0, 0)

    def _ranges(self) -> Iterator[_Range]:
        for reader, pruned in self._pruned():
            for rows in pruned.ranges:
                borders = () if rows.tested else reader.projection(self._names, self._coded).borders
                for begin, end in batch_ranges(rows.begin, rows.end, self._batch_rows, borders):
                    yield _Range(reader, begin, end, rows.tested)

    def _read(self, rows: _Range) -> list[pa.RecordBatch]:
        try:
            batch = self._read_filtered(rows) if rows.tested else self._read_all(rows)
        except kernels.BatchTooLargeError:
            if rows.end - rows.begin == 1:
                raise
            middle = (rows.begin + rows.end) // 2
            return self._read(rows._replace(end=middle)) + self._read(rows._replace(begin=middle))
        return [batch] if batch is not None and batch.num_rows else []

    def _read_all(self, rows: _Range) -> pa.RecordBatch:
        reader, begin, end, _ = rows
        batch = reader.projection(self._names, self._coded).read_range(begin, end)
        live = _live_mask(reader, begin, end)
        return batch if live is None else batch.filter(live)

    def _read_filtered(self, rows: _Range) -> pa.RecordBatch | None:
        reader, begin, end, _ = rows
        tested, mask, passing = self._test(rows)
        if passing == 0:
            return None
        late = reader.projection(self._late_names, self._coded)
        if passing == end - begin:
            found = late.read_range(begin, end)
        elif passing < SPARSE_SHARE * (end - begin):
            offsets = np.flatnonzero(mask.to_numpy(zero_copy_only=False)).astype(np.uint32)
            found = late.read_rows(offsets + np.uint32(begin))
            tested = tested.filter(mask)
        else:
            found = late.read_range(begin, end).filter(mask)
            tested = tested.filter(mask)
        if not self._names:
            return _empty_columns(passing)
        arrays = [
            _plain(tested.column(field.name), field.type)
            if field.name in self._filter_names
            else found.column(field.name)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _test(self, rows: _Range) -> tuple[pa.RecordBatch, pa.BooleanArray, int]:
        """The columns of the filter, which rows pass it and are not deleted, and how many these are."""
        reader, begin, end, _ = rows
        # Strings with few distinct values are tested once per value.
        coded = self._coded.union(name for name in self._filter_names if reader.is_dictionary_coded(name))
        tested = reader.projection(self._filter_names, coded).read_range(begin, end)
        assert self._filter is not None
        mask = evaluate(self._filter, tested)
        if mask.null_count:
            mask = pc.fill_null(mask, False)
        live = _live_mask(reader, begin, end)
        if live is not None:
            mask = pc.and_(mask, live)
        return tested, mask, mask.true_count

    def _count(self, rows: _Range) -> int:
        if rows.tested:
            return self._test(rows)[2]
        live = _live_mask(rows.reader, rows.begin, rows.end)
        return rows.end - rows.begin if live is None else int(live.true_count)


def projected_schema(snapshot: Snapshot, names: Sequence[str], coded: Collection[str] = ()) -> pa.Schema:
    """The Arrow schema of some columns, system columns included; ColumnNotFoundError names a wrong one.

    Columns in `coded`, which must be strings, get a dictionary type.
    """
    fields = [
        SYSTEM_FIELDS[name] if name in SYSTEM_FIELDS else snapshot.schema.field(name).to_arrow()
        for name in names
    ]
    for index, field in enumerate(fields):
        if field.name in coded:
            if not (pa.types.is_string(field.type) or pa.types.is_large_string(field.type)):
                raise UnsupportedTypeError("Only strings can be read as dictionaries", column=field.name)
            fields[index] = field.with_type(pa.dictionary(pa.int32(), field.type))
    return pa.schema(fields)


def _plain(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """A column as the scan promises it, which may have been read as codes for its filter."""
    is_coded = pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(arrow_type)
    return array.dictionary_decode() if is_coded else array


def _parse_filter(filter: str | pc.Expression | Node | None, snapshot: Snapshot) -> Node | None:
    if filter is None or isinstance(filter, Node):
        return filter
    schema = snapshot.schema.to_arrow()
    for field in SYSTEM_FIELDS.values():
        schema = schema.append(field)
    return parse_sql(filter, schema) if isinstance(filter, str) else from_arrow(filter, schema)


def _live_mask(reader: FragmentReader, begin: int, end: int) -> pa.BooleanArray | None:
    """Which of the rows [begin, end) are not deleted; None when all of them are live."""
    deleted = reader.deleted()
    if deleted is None:
        return None
    first, last = np.searchsorted(deleted, [begin, end])
    if first == last:
        return None
    live = np.ones(end - begin, dtype=bool)
    live[deleted[first:last] - begin] = False
    return pa.array(live)


def _empty_columns(rows: int) -> pa.RecordBatch:
    """A batch without columns that still has rows."""
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
