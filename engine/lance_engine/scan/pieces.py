"""The remaining rows of a scan in pieces, each of which a thread reads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lance_engine.fetch import MOST_AHEAD, ReadAhead, ordered_ahead
from lance_engine.metrics import ScanMetrics, counting
from lance_engine.scan.fetching import (
    FragmentBuffers,
    Planned,
    fetched_ahead,
    first_rows,
    group_fetched_ahead,
)
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.fragment_group import FragmentGroup, FragmentGrouping, GroupUnreadableError, together
from lance_engine.scan.plan import Piece, RowRanges, ScanPlan, pieces
from lance_engine.scan.projection import Projection
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import Selection

if TYPE_CHECKING:
    from lance_engine.scan.layout import Names

# Larger than any piece.
_ALL_ROWS = 1 << 32


class PieceRows(NamedTuple):
    """The maximum number of rows of a piece."""

    batch: int
    decoded: int
    """If they only need decoding."""
    tested: int
    """If a filter is tested on them."""


class Columns(NamedTuple):
    """What a scan reads of its rows."""

    returned: Names
    coded: frozenset[str]
    """The columns that are returned as dictionaries."""
    tested: Names
    """The columns of the filter."""


class ScanPieces:
    """Cuts the rows of `plan` into pieces, in row order."""

    def __init__(
        self,
        plan: ScanPlan,
        grouping: FragmentGrouping,
        reader_for: Callable[[int], FragmentReader],
        columns: Columns,
        rows: PieceRows,
        *,
        limits_bytes: bool,
    ) -> None:
        """`limits_bytes`: the size of batches is limited in bytes, so that decoders alone cannot cut them."""
        self._plan = plan
        self._grouping = grouping
        self._reader_for = reader_for
        self._columns = columns
        self._rows = rows
        self._limits_bytes = limits_bytes

    def of_run(
        self,
        metrics: ScanMetrics,
        *,
        counted: bool = False,
        limit: int | None = None,
        expected: int | None = None,
        fetching: ReadAhead | None = None,
    ) -> Iterator[Piece]:
        """The pieces of one run: of a batch, but as large as can be where rows only need to be counted
        or decoded.

        `counted` is for runs that only count the rows, `limit` and `expected` for those that need the first
        ones. Remote data is requested ahead with `fetching`.
        """
        # Rows that need no test are counted without reading them, however few.
        first = MOST_AHEAD if limit is None and expected is None else 1
        plan = self._plan.fragments(1 if counted else self._rows.batch // 4, metrics, first)
        coming = _timed(together(plan, self._grouping, self._reader_for, limit), metrics)
        if fetching is not None:
            if limit is not None:
                coming = first_rows(coming, limit)
            elif expected is not None:
                coming = first_rows(coming, expected, is_certain=False)
            yield from self._fetched(coming, metrics, fetching, first, counted=counted, few=limit is not None)
            return
        for reader, parts in coming:
            try:
                yield from self._cut(reader, parts, counted)
            except GroupUnreadableError:
                self._grouping.give_up()
                assert isinstance(reader, FragmentGroup)
                for alone, rows in reader.apart(Selection.of_range(0, reader.rows)):
                    yield from self._cut(alone, [RowRanges(rows.ranges, parts[0].tested)], counted)

    def _fetched(
        self,
        coming: Iterator[Planned],
        metrics: ScanMetrics,
        read_ahead: ReadAhead,
        first: int,
        *,
        counted: bool,
        few: bool,
    ) -> Iterator[Piece]:
        """The pieces of remote files, which are opened, and whose data is fetched, in advance."""

        def prepare(task: tuple[int, Planned]) -> FragmentBuffers | None:
            turn, (reader, parts) = task
            with counting(metrics):
                if isinstance(reader, FragmentGroup):
                    return group_fetched_ahead(read_ahead, turn, reader, self._group_names(parts, counted))
                reader.deleted()
                wanted = list(self._wanted(reader, parts, counted))
                return fetched_ahead(read_ahead, turn, wanted, few=few)

        for (_, (reader, parts)), buffers in ordered_ahead(prepare, enumerate(coming), first):
            for piece in self._cut(reader, parts, counted):
                if buffers is not None:
                    rows = piece.selection
                    piece = piece._replace(ticket=buffers.begin(rows.begin, rows.end, rows.count))
                yield piece
            if buffers is not None:
                buffers.end()

    def _group_names(self, parts: Sequence[RowRanges], counted: bool) -> Names:
        """The columns that are read for all rows of a group."""
        if parts[0].tested:
            return self._columns.tested
        return () if counted else self._columns.returned

    def _wanted(
        self, reader: RowsReader, parts: Sequence[RowRanges], counted: bool
    ) -> Iterator[tuple[Projection, RowRanges]]:
        """The columns that are read for all rows of parts."""
        for part in parts:
            if part.tested:
                yield reader.projection(self._columns.tested), part
            elif not counted:
                yield reader.projection(self._columns.returned, self._columns.coded), part

    def _cut(self, reader: RowsReader, parts: Sequence[RowRanges], counted: bool) -> Iterator[Piece]:
        """Parts of the rows of a reader in pieces; fails before the first one where a run cannot be read."""
        is_fetched = isinstance(reader, FragmentGroup) and not reader.is_local
        for part in parts:
            if part.tested:
                yield from pieces(reader, part, self._rows.tested, None)
            elif counted:
                yield from pieces(reader, part, _ALL_ROWS, None)
            elif is_fetched:  # the decoding thread waits for the files
                yield from pieces(reader, part, self._rows.batch, None)
            else:
                projection = reader.projection(self._columns.returned, self._columns.coded)
                rows = _ALL_ROWS if self._only_decodes(projection, reader, part) else self._rows.decoded
                for piece in pieces(reader, part, rows, projection.borders):
                    native = self._only_decodes(projection, reader, piece)
                    yield piece._replace(projection=projection) if native else piece

    def _only_decodes(self, projection: Projection, reader: RowsReader, rows: RowRanges | Piece) -> bool:
        """Whether the decoders return rows in the types of the scan."""
        ranges = rows.ranges if isinstance(rows, RowRanges) else rows.selection.ranges
        return (
            projection.native is not None
            and not self._limits_bytes
            and len(ranges) == 1
            and not reader.any_deleted(int(ranges[0, 0]), int(ranges[0, 1]))
        )


def _timed(coming: Iterator[Planned], metrics: ScanMetrics) -> Iterator[Planned]:
    while True:
        with metrics.phase("plan"), counting(metrics):
            planned = next(coming, None)
            if planned is not None and isinstance(planned[0], FragmentGroup):
                planned[0].fetch_deletions()
        if planned is None:
            return
        yield planned
