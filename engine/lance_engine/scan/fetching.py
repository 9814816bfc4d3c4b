"""Prefetches the data of remote files that the decoders of a scan need: the pages of the remaining rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from lance_engine import kernels
from lance_engine.fetch import LEAST_GAP, FileBuffers, PlannedRequest, ReadAhead, Span, joined
from lance_engine.file.contents import FileContents
from lance_engine.scan.fragment_group import FragmentGroup, GroupUnreadableError
from lance_engine.scan.layout import Names
from lance_engine.scan.plan import RowRanges
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import I64Array

if TYPE_CHECKING:
    from lance_engine.scan.projection import Projection

# Pages are fetched whole unless they are larger than this, or than their share of the read-ahead limit.
_LEAST_UNIT: Final = 256 << 10
_MOST_UNIT: Final = 16 << 20
# For every column, one unit should be decoded while another one is in flight.
_UNITS_PER_COLUMN: Final = 2


# Beyond all rows.
_BEYOND: Final = 1 << 62
# The data after the chunk index of a page that is fetched with it: the first chunk, or most of it.
_PEEK: Final = 16 << 10
# Rows in which a limit is searched first if not all rows count; then twice as many.
_FIRST_ROWS: Final = 1024

#: The remaining rows of a fragment.
Planned = tuple[RowsReader, list[RowRanges]]


class Ticket:
    """Rows of a fragment that are being decoded, or will be next."""

    __slots__ = ("begin", "fragment", "left")

    def __init__(self, fragment: FragmentBuffers, begin: int, rows: int) -> None:
        self.fragment = fragment
        self.begin = begin
        self.left = rows


class FragmentBuffers:
    """The prefetched data for the rows of a reader, kept until they are decoded."""

    def __init__(
        self,
        read_ahead: ReadAhead,
        files: dict[FileContents, FileBuffers],
        ended: Callable[[], None] | None = None,
    ) -> None:
        """`ended` is called when all rows have been decoded."""
        self._read_ahead = read_ahead
        self._ended = ended
        self.files: Mapping[FileContents, FileBuffers] = files
        self._lock = threading.Lock()
        requests = [request for buffers in files.values() for request in buffers.requests]
        self._kept = sorted(requests, key=lambda request: request.span.last_row, reverse=True)
        self._outstanding: list[Ticket] = []
        self._begun = 0

    def begin(self, begin: int, end: int, rows: int) -> Ticket:
        """Record that `rows` of the rows [begin, end) will be decoded; calls are in row order."""
        ticket = Ticket(self, begin, rows)
        with self._lock:
            self._outstanding.append(ticket)
            self._begun = end
        return ticket

    def finish(self, ticket: Ticket, rows: int) -> None:
        """Record that `rows` rows of a ticket were decoded, and release data that no later row needs."""
        with self._lock:
            ticket.left -= rows
            if ticket.left > 0:
                return
            self._outstanding.remove(ticket)
            border = self._outstanding[0].begin if self._outstanding else self._begun
            done = []
            while self._kept and self._kept[-1].span.last_row <= border:
                done.append(self._kept.pop())
            is_last = not self._outstanding and self._begun >= _BEYOND
        self._let_go(done, is_last)

    def end(self) -> None:
        """Record that there are no more rows."""
        with self._lock:
            self._begun = _BEYOND
            is_last = not self._outstanding
            done = self._kept if is_last else []
            self._kept = [] if is_last else self._kept
        self._let_go(done, is_last)

    def _let_go(self, requests: Sequence[PlannedRequest], is_last: bool) -> None:
        self._read_ahead.drop(requests)
        if is_last:
            self.files = {}
            if self._ended is not None:
                self._ended()


def fetched_ahead(
    read_ahead: ReadAhead, turn: int, wanted: Sequence[tuple[Projection, RowRanges]], *, few: bool
) -> FragmentBuffers | None:
    """Plan the data for columns of rows of a reader; None if nothing has to be fetched.

    `few` means that hardly more rows will be needed: no data for neighbouring rows is read.
    """
    spans: dict[FileContents, list[Span]] = {}
    leaves = max(
        (sum(len(leaf_columns) for _, leaf_columns in projection.leaves) for projection, _ in wanted),
        default=1,
    )
    unit = min(max(read_ahead.budget // (_UNITS_PER_COLUMN * max(leaves, 1)), _LEAST_UNIT), _MOST_UNIT)
    for projection, part in wanted:
        for file, leaf_columns in projection.leaves:
            if isinstance(file, FileContents) and not file.is_local:
                own = spans.setdefault(file, [])
                gap = LEAST_GAP if few else file.fetcher.model.gap
                with file.placed():
                    own += _spans(file, leaf_columns, part.ranges, unit, gap, _PEEK if few else 0)
    files = {}
    for file, own in spans.items():
        missing = [span for span in own if not file.holds(span.offset, span.length)]
        most = min(unit, file.fetcher.model.joined)
        requests = [
            PlannedRequest(file.fetcher, file.path, span) for span in joined(missing, LEAST_GAP, most)
        ]
        files[file] = FileBuffers(read_ahead, requests)
    if not any(buffers.requests for buffers in files.values()):
        return None
    read_ahead.add(turn, [request for buffers in files.values() for request in buffers.requests])
    return FragmentBuffers(read_ahead, files)


def group_fetched_ahead(
    read_ahead: ReadAhead, turn: int, group: FragmentGroup, names: Names
) -> FragmentBuffers:
    """Plan to fetch whole files of a group with some columns."""
    files = {}
    try:
        for file, start in group.contents(names, frozenset()):
            missing = [] if file.holds(0, file.size) else [Span(0, file.size, start, group.rows)]
            files[file] = FileBuffers(
                read_ahead, [PlannedRequest(file.fetcher, file.path, span) for span in missing]
            )
    except GroupUnreadableError:
        files = {}  # reading the group will report that
    read_ahead.add(turn, [request for buffers in files.values() for request in buffers.requests])
    return FragmentBuffers(read_ahead, files, group.evict)


def first_rows(coming: Iterable[Planned], limit: int, *, is_certain: bool = True) -> Iterator[Planned]:
    """The part of a plan that `limit` rows need: exactly that if all rows count, otherwise increasing parts.

    The whole plan if the limit is not certain.
    """
    rows = max(limit, _FIRST_ROWS)
    for reader, parts in coming:
        for part in parts:
            all_count = not part.tested and not reader.any_deleted(
                int(part.ranges[0, 0]), int(part.ranges[-1, 1])
            )
            if is_certain and all_count:
                yield reader, [_parts(part, limit)[0]]
                limit -= min(limit, part.rows)
                if not limit:
                    return
                continue
            left: RowRanges | None = part
            while left is not None:
                some, left = _parts(left, rows)
                yield reader, [some]
                rows *= 2


def _parts(part: RowRanges, rows: int) -> tuple[RowRanges, RowRanges | None]:
    """The first `rows` rows of a part, and the others, if there are any."""
    ends = np.cumsum(part.ranges[:, 1] - part.ranges[:, 0])
    if rows >= ends[-1]:
        return part, None
    last = int(np.searchsorted(ends, rows))
    first, others = part.ranges[: last + 1].copy(), part.ranges[last:].copy()
    first[-1, 1] -= ends[last] - rows
    others[0, 0] = first[-1, 1]
    others = others[others[:, 0] < others[:, 1]]
    return part._replace(ranges=first), part._replace(ranges=others)


def _spans(
    file: FileContents,
    leaves: Sequence[kernels.LeafColumn],
    ranges: I64Array,
    unit: int,
    gap: int,
    peek: int,
) -> list[Span]:
    """The data of a file that rows of some columns need.

    These are whole pages, or parts of pages that are large or of which few rows are needed.

    `peek` bytes after the description of a page are fetched with it: they contain its first rows.
    """
    whole: list[Span] = []
    in_part: list[tuple[kernels.LeafColumn, I64Array, int]] = []
    for leaf in leaves:
        pages = zip(pairwise(leaf.page_starts), leaf.page_buffers, strict=True)
        for (first, last), buffers in pages:
            inside = _within(ranges, first, last)
            size = sum(length for _, length in buffers)
            if not len(inside) or not size:
                continue
            begin, end = int(inside[0, 0]), int(inside[-1, 1])
            rows = int((inside[:, 1] - inside[:, 0]).sum())
            unwanted = size * (last - first - rows) // max(last - first, 1)
            if size <= unit and unwanted <= gap:
                whole += [Span(offset, length, begin, end) for offset, length in buffers]
            else:
                rows_of_unit = max(1, (last - first) * unit // size)
                in_part.append((leaf, inside, rows_of_unit))
    if in_part:
        described = [span for leaf, inside, _ in in_part for span in leaf.metadata_ranges(inside)]
        file.fetch_lasting(
            [(offset, min(length + peek, file.size - offset)) for offset, length in described if length]
        )
    return whole + [span for part in in_part for span in _part_spans(*part)]


def _part_spans(leaf: kernels.LeafColumn, ranges: I64Array, rows: int) -> Iterator[Span]:
    """The data that ranges of rows of a page need, for at most `rows` rows at a time."""
    for low, high in ranges.tolist():
        for first in range(low, high, rows):
            last = min(first + rows, high)
            try:
                data_ranges = leaf.data_ranges(np.array([[first, last]]))
            except kernels.NotResidentError:
                return  # the position of the rest depends on the data; it is fetched when it is needed
            for offset, length in data_ranges:
                yield Span(offset, length, first, last)


def _within(ranges: I64Array, first: int, last: int) -> I64Array:
    """What ascending ranges have in [first, last)."""
    low, high = np.searchsorted(ranges[:, 1], first, "right"), np.searchsorted(ranges[:, 0], last, "left")
    return np.clip(ranges[low:high], first, last)
