"""Reads the pieces of a plan: filter columns first, other columns for the rows that passed."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from lance_engine import compute as pc
from lance_engine import kernels
from lance_engine.arrow_values import empty_columns, of_numpy
from lance_engine.expr.value_types import is_bytes, is_text
from lance_engine.fetch import reading_planned
from lance_engine.logical_types import with_types
from lance_engine.metrics import ScanMetrics, counting
from lance_engine.scan.fragment_group import FragmentGroup, GroupUnreadableError
from lance_engine.scan.plan import Piece
from lance_engine.scan.projection import Projection, narrowed_schema
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import SPARSE_DISTANCE, Selection

if TYPE_CHECKING:
    from lance_engine.scan.filter import FilterSteps, Passing
    from lance_engine.scan.layout import Names

# Maximum distance of values up to which decoding the range is cheaper than picking values from a chunk.
PICKED_DISTANCE = 12
# The same for rows that are dropped while decoding, which picks values where few are wanted.
_MASKED_DISTANCE = 64
# The same if all columns are numbers.
_MASKED_NUMBERS = 128

# Maximum size in bytes from which rows are picked at once, if their width is known: both the source and the
# result take memory.
_PICKED_BYTES = 8 << 20
_FEWEST_PICKED = 1024

# Errors which mean that a piece must be read in smaller ones.
_TOO_MUCH = (kernels.BatchTooLargeError, GroupUnreadableError)


class PieceReader:
    """Reads pieces as batches of `schema`, for which `columns` are read, or counts their rows.

    Thread-safe.
    """

    def __init__(
        self,
        schema: pa.Schema,
        columns: Names,
        coded: frozenset[str],
        steps: FilterSteps | None,
        batch_rows: int,
        batch_bytes: int | None = None,
    ) -> None:
        self._schema = schema
        self._names = tuple(schema.names)
        self._columns = columns
        self._coded = coded
        self._steps = steps
        #: columns that need not be read again after the filter
        self._wanted = frozenset(column for column in columns if isinstance(column, str))
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._texts = frozenset(field.name for field in schema if is_text(field.type) or is_bytes(field.type))
        self._numbers = frozenset(field.name for field in schema if _is_fixed(field.type))
        self._picked = self._texts | self._numbers
        self._seen_rows = self._seen_bytes = 0
        self._narrowed: frozenset[str] = frozenset()
        self._copy: PieceReader | None = None

    def narrowed(self, names: Collection[str]) -> PieceReader:
        """A copy that returns the decimals of these columns in 64 bits."""
        wanted = frozenset(names)
        narrowed = self._copy
        if narrowed is None or narrowed._narrowed != wanted:
            narrowed = copy.copy(self)
            narrowed._schema = narrowed_schema(self._schema, names)
            narrowed._narrowed = wanted
            self._copy = narrowed
        return narrowed

    def read(self, piece: Piece, metrics: ScanMetrics) -> list[pa.RecordBatch]:
        """The rows of a piece that pass the filter and are not deleted; no batch is empty."""
        with fetched(piece):
            return self._read(piece, metrics)

    def _read(self, piece: Piece, metrics: ScanMetrics) -> list[pa.RecordBatch]:
        try:
            with counting(metrics):
                batches = self._tested(piece, metrics) if piece.tested else [self._whole(piece, metrics)]
        except _TOO_MUCH as error:
            return [batch for part in _smaller(piece, error) for batch in self._read(part, metrics)]
        rows = self._batch_rows
        batches = [
            batch.slice(first, rows) if batch.num_rows > rows else batch
            for batch in batches
            for first in range(0, batch.num_rows, rows)
        ]
        if self._batch_bytes is None:
            return batches
        return [part for batch in batches for part in _bounded(batch, self._batch_bytes)]

    def passing(self, piece: Piece, metrics: ScanMetrics) -> list[tuple[RowsReader, Selection]]:
        """The rows of a piece that pass the filter and are not deleted; no selection is empty."""
        with fetched(piece):
            return self._passing(piece, metrics)

    def _passing(self, piece: Piece, metrics: ScanMetrics) -> list[tuple[RowsReader, Selection]]:
        reader = piece.reader
        if not piece.tested:
            live = live_mask(reader, piece.selection)
            if live is None:
                return [(reader, piece.selection)]
            return [(reader, piece.selection.where(live))] if live.true_count else []
        try:
            with counting(metrics):
                passing = self._test(piece, metrics, frozenset())
        except _TOO_MUCH as error:
            return [
                passing_rows
                for part in _smaller(piece, error)
                for passing_rows in self._passing(part, metrics)
            ]
        if not passing.count:
            return []
        passing.compress()
        return [(reader, passing.selection)]

    def count(self, piece: Piece, metrics: ScanMetrics) -> int:
        """How many rows of a piece pass the filter and are not deleted."""
        with fetched(piece):
            return self._count(piece, metrics)

    def _count(self, piece: Piece, metrics: ScanMetrics) -> int:
        if not piece.tested:
            live = live_mask(piece.reader, piece.selection)
            return piece.selection.count if live is None else int(live.true_count)
        try:
            with counting(metrics):
                passing = self._test(piece, metrics, frozenset())
        except _TOO_MUCH as error:
            return sum(self._count(part, metrics) for part in _smaller(piece, error))
        return passing.count

    def _whole(self, piece: Piece, metrics: ScanMetrics) -> pa.RecordBatch:
        begin = time.perf_counter()
        batch = self._projection(piece.reader, self._columns).read(piece.selection)
        metrics.add(rows_decoded=piece.selection.count if self._names else 0)
        if self._narrowed and not batch.schema.equals(self._schema):
            batch = with_types(batch, self._schema)
        live = live_mask(piece.reader, piece.selection)
        batch = batch if live is None else pc.filter(batch, live)
        metrics.add_time("read", time.perf_counter() - begin)
        return batch

    def _projection(self, reader: RowsReader, columns: Names) -> Projection:
        return reader.projection(columns, self._coded).narrowed(self._narrowed)

    def _test(self, piece: Piece, metrics: ScanMetrics, wanted: frozenset[str]) -> Passing:
        """The rows that pass, with the needed columns that were read on the way."""
        from lance_engine.scan.filter import Passing

        begin = time.perf_counter()
        reader = piece.reader
        assert self._steps is not None
        passing = Passing(reader, piece.selection, live_mask(reader, piece.selection))
        steps = self._steps.ordered()

        def coded(name: str) -> bool:
            # Strings with few distinct values are tested once per value.
            return name in self._coded or reader.is_dictionary_coded(name)

        for number, step in enumerate(steps):
            if not passing.count:
                break
            later = {name for after in steps[number + 1 :] for name in after.names}
            passing.test(step, coded, wanted | later)
        metrics.add(rows_decoded=passing.decoded)
        metrics.add_time("filter", time.perf_counter() - begin)
        return passing

    def _tested(self, piece: Piece, metrics: ScanMetrics) -> list[pa.RecordBatch]:
        passing = self._test(piece, metrics, self._wanted)
        if not passing.count:
            return []
        if not self._names:
            return [empty_columns(passing.count)]
        begin = time.perf_counter()
        are_numbers = self._numbers.union(passing.columns).issuperset(self._names)
        mask = passing.dense_mask(_MASKED_NUMBERS if are_numbers else _MASKED_DISTANCE)
        if mask is not None:
            batches = self._masked(piece, passing, mask)
        else:
            passing.compress()
            selection = passing.selection
            batches = [
                self._materialised(piece, selection.part(first, last), first, passing.columns)
                for first, last in selection.parts(self._rows_at_once(selection))
            ]
        self._saw(batches)
        metrics.add_time("read", time.perf_counter() - begin)
        return batches

    def _masked(self, piece: Piece, passing: Passing, mask: pa.BooleanArray) -> list[pa.RecordBatch]:
        """The rows of a range at which `mask` is true; the others are dropped while decoding, if possible."""
        late = self._late(passing)
        dropping = [name for name in late if self._takes_masks(piece.reader, name)]
        others = [name for name in late if name not in dropping]
        rows = passing.selection
        step = max(1, self._rows_at_once(None) * rows.count // passing.count)
        batches = []
        for first in range(0, rows.count, step):
            count = min(step, rows.count - first)
            own = mask.slice(first, count)
            if not own.true_count:
                continue
            begin = rows.begin + first
            arrays = {
                name: pc.filter(array.slice(first, count), own) for name, array in passing.columns.items()
            }
            if dropping:
                projection = self._projection(piece.reader, self._columns_of(dropping))
                wanted = projection.read_wanted(begin, begin + count, own)
                arrays.update(zip(dropping, wanted.columns, strict=True))
            if others:
                part = rows.part(first, first + count)
                arrays.update(self._of_range(piece, part, own, others))
            batches.append(self._assembled(arrays))
        return batches

    def _of_range(
        self, piece: Piece, part: Selection, mask: pa.BooleanArray, names: Collection[str]
    ) -> dict[str, pa.Array]:
        """These columns, which cannot drop rows, of the rows of a range at which `mask` is true."""
        distance = SPARSE_DISTANCE if self._picked.isdisjoint(names) else PICKED_DISTANCE
        if mask.true_count * distance < part.count:
            return self._picked_columns(piece, part.where(mask), names)
        picked_columns = self._picked_columns(piece, part, names)
        return {name: pc.filter(array, mask) for name, array in picked_columns.items()}

    def _takes_masks(self, reader: RowsReader, name: str) -> bool:
        return reader.has_chunks and self._projection(reader, self._columns_of([name])).takes_masks

    def _columns_of(self, names: Collection[str]) -> Names:
        """The columns to read with these names."""
        return tuple(c for c, n in zip(self._columns, self._names, strict=True) if n in names)

    def _saw(self, batches: list[pa.RecordBatch]) -> None:
        # Losing an update between threads does not matter.
        self._seen_rows += sum(batch.num_rows for batch in batches)
        self._seen_bytes += sum(batch.nbytes for batch in batches)

    def _assembled(self, arrays: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """A batch of these columns in the types of the scan."""
        return pa.RecordBatch.from_arrays(
            [_plain(arrays[field.name], field.type) for field in self._schema], schema=self._schema
        )

    def _late(self, passing: Passing) -> list[str]:
        """The columns that are still to be read."""
        return [name for name in self._names if name not in passing.columns]

    def _rows_at_once(self, selection: Selection | None) -> int:
        """Number of rows of a selection, or wanted by a mask, that are materialized as one batch."""
        if (selection is not None and selection.is_range) or not self._seen_bytes:
            return self._batch_rows
        most = max(_FEWEST_PICKED, _PICKED_BYTES * self._seen_rows // self._seen_bytes)
        return min(self._batch_rows, most)

    def _materialised(
        self, piece: Piece, selection: Selection, first: int, columns: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        """All columns of some rows that passed, whose values in `columns` begin at `first`."""
        arrays = {name: array.slice(first, selection.count) for name, array in columns.items()}
        late = [name for name in self._names if name not in arrays]
        return self._assembled({**arrays, **self._picked_columns(piece, selection, late)})

    def _picked_columns(
        self, piece: Piece, selection: Selection, late: Collection[str]
    ) -> dict[str, pa.Array]:
        """These columns of some rows."""
        arrays: dict[str, pa.Array] = {}
        if selection.is_range:
            groups = [(list(late), SPARSE_DISTANCE)]
        else:
            picked = self._picked if piece.reader.has_chunks else self._texts
            groups = [
                ([n for n in late if n not in picked], SPARSE_DISTANCE),
                ([n for n in late if n in picked], PICKED_DISTANCE),
            ]
        for names, distance in groups:
            if names:
                projection = self._projection(piece.reader, self._columns_of(names))
                arrays.update(zip(names, read_rows(projection, selection, distance).columns, strict=True))
        return arrays


@contextmanager
def fetched(piece: Piece) -> Iterator[None]:
    """A context manager for reading a piece from prefetched data, which is released at the end."""
    ticket = piece.ticket
    if ticket is None:
        yield
        return
    try:
        with reading_planned(ticket.fragment.files):
            yield
    finally:
        ticket.fragment.finish(ticket, piece.selection.count)


def _smaller(piece: Piece, error: Exception) -> list[Piece]:
    """Smaller pieces for one that cannot be read at once; LanceError for a single row."""
    if isinstance(error, GroupUnreadableError):
        return list(apart(piece))
    if piece.selection.count > 1:
        return [piece._replace(selection=half) for half in piece.selection.halves()]
    assert isinstance(error, kernels.BatchTooLargeError)
    reader = next(apart(piece)).reader if isinstance(piece.reader, FragmentGroup) else piece.reader
    raise reader.row_too_large(error) from None


def apart(piece: Piece) -> Iterator[Piece]:
    """A piece of several fragments, divided by fragment."""
    assert isinstance(piece.reader, FragmentGroup)
    for reader, selection in piece.reader.apart(piece.selection):
        yield Piece(reader, selection, piece.tested)


def read_rows(projection: Projection, selection: Selection, distance: int) -> pa.RecordBatch:
    """Individual rows, or the range around them if they are at most `distance` apart on average."""
    cover, mask = selection.covering(distance)
    batch = projection.read(cover)
    return batch if mask is None else pc.filter(batch, of_numpy(mask))


def live_mask(reader: RowsReader, selection: Selection) -> pa.BooleanArray | None:
    """Which of the rows are not deleted; None when all of them are live."""
    deleted = reader.deleted()
    if deleted is None:
        return None
    first, last = np.searchsorted(deleted, [selection.begin, selection.end])
    if first == last:
        return None
    within = deleted[first:last]
    if selection.is_range:
        live = np.ones(selection.count, dtype=np.bool_)
        live[within - np.uint32(selection.begin)] = False
    else:
        live = np.isin(selection.offsets, within, assume_unique=True, invert=True)
        if live.all():
            return None
    return of_numpy(live)


def _is_fixed(kind: pa.DataType) -> bool:
    return bool(at.is_integer(kind) or at.is_floating(kind) or at.is_temporal(kind) or at.is_decimal128(kind))


def _bounded(batch: pa.RecordBatch, limit: int) -> Iterator[pa.RecordBatch]:
    """A batch cut into batches of at most `limit` bytes, or of one row."""
    if batch.num_rows < 2 or batch.nbytes <= limit:
        yield batch
        return
    middle = batch.num_rows // 2
    yield from _bounded(batch.slice(0, middle), limit)
    yield from _bounded(batch.slice(middle), limit)


def _plain(array: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """A column in the type of the scan; for its filter it may have been read as codes, or in full width."""
    if at.is_dictionary(array.type) and not at.is_dictionary(arrow_type):
        return pc.take(array.dictionary, array.indices)
    return pc.cast(array, arrow_type) if at.is_decimal64(arrow_type) else array
