"""Which rows a scan has to read: row ids, then indices, then zone maps narrow them down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_engine.index.ranges import intersection
from lance_engine.metrics import IndexMetrics, ScanMetrics
from lance_engine.scan.fragment import FragmentReader, Projection
from lance_engine.scan.selection import I64Array, Selection
from lance_engine.scan.splits import ScanSplit, batch_ranges

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.index.search import IndexSearch
    from lance_engine.scan.prune import Pruner
    from lance_engine.scan.row_ids import RowIdMatches
    from lance_engine.table.snapshot import Snapshot

# So few rows are read faster than the zone maps of their fragment.
_FEW_ROWS = 1024


class Part(NamedTuple):
    """Ascending disjoint ranges of rows, shape (n, 2); `tested`: the filter has to be tested on them."""

    ranges: I64Array
    tested: bool


class Piece(NamedTuple):
    """Rows of one fragment that are read at once."""

    reader: FragmentReader
    selection: Selection
    tested: bool
    projection: Projection | None = None
    """What alone reads these rows, one range, without the interpreter; None where there is more to do."""

    def cut(self, rows: int) -> Iterator[Piece]:
        """Pieces of at most `rows` rows, where this one is a range; else it is of the size of a batch."""
        if not self.selection.is_range or self.selection.count <= rows:
            yield self
            return
        for begin, end in batch_ranges(self.selection.begin, self.selection.end, rows, ()):
            yield self._replace(selection=Selection.of_range(begin, end))


class ScanPlan:
    """What a filter leaves of a snapshot, or of some splits of it."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        filter: Node | None,
        splits: Sequence[ScanSplit] | None,
        *,
        zone_maps: bool,
        indices: bool,
    ) -> None:
        self._snapshot = snapshot
        self._reader_for = reader_for
        self._splits = splits
        self._lookup = _lookup(snapshot, filter) if filter is not None else None
        #: what has to be tested on rows, where neither an index nor a zone map makes that needless
        self.filter = filter if self._lookup is None else self._lookup.residual
        self._indexed = _search(snapshot, self.filter) if indices and self.filter is not None else None
        self._pruner = _pruner(snapshot, self.filter) if zone_maps and self.filter is not None else None

    @property
    def has_zones(self) -> bool:
        """Whether zone maps are looked at."""
        return self._pruner is not None

    @property
    def has_lookup(self) -> bool:
        """Whether conditions on row ids were looked up."""
        return self._lookup is not None

    def fragments(
        self, least: int, metrics: ScanMetrics | None = None
    ) -> Iterator[tuple[FragmentReader, list[Part]]]:
        """What is left of each fragment or split; those with nothing left are not among them.

        Rows on which the filter need not be tested make a part of their own from `least` rows on.
        """
        splits = self._clamped()
        if metrics is not None:
            metrics.add(
                fragments=len({split.fragment_id for split in splits}),
                rows=sum(split.stop - split.start for split in splits),
            )
            if self._indexed is not None:
                metrics.indices = [IndexMetrics(*use) for use in _uses(self._indexed)]
        seen: set[int] = set()
        for split in splits:
            parts = self._parts(split, least, metrics)
            if metrics is not None and not parts:
                metrics.add(rows_planned=split.stop - split.start)
            if not parts:
                continue
            if metrics is not None:
                rows = [(int((part.ranges[:, 1] - part.ranges[:, 0]).sum()), part.tested) for part in parts]
                metrics.add(
                    fragments_read=split.fragment_id not in seen,
                    rows_planned=split.stop - split.start,
                    rows_left=sum(count for count, _ in rows),
                    rows_untested=sum(count for count, tested in rows if not tested),
                )
                seen.add(split.fragment_id)
            yield self._reader_for(split.fragment_id), parts

    def _clamped(self) -> list[ScanSplit]:
        """The splits, as far as there are rows."""
        if self._splits is None:
            return [ScanSplit(f.id, 0, f.physical_rows) for f in self._snapshot.fragments]
        rows = {
            number: self._snapshot.fragment(number).physical_rows
            for number in {s.fragment_id for s in self._splits}
        }
        return [ScanSplit(s.fragment_id, s.start, min(s.stop, rows[s.fragment_id])) for s in self._splits]

    def _parts(self, split: ScanSplit, least: int, metrics: ScanMetrics | None) -> list[Part]:
        whole = np.array([[split.start, split.stop]], dtype=np.int64)
        allowed, exact = whole, self.filter is None
        if split.start >= split.stop:
            return []
        if self._lookup is not None:
            allowed = intersection(allowed, self._lookup.in_fragment(split.fragment_id))
        if self._indexed is not None:
            matches = self._indexed.matches.get(split.fragment_id)
            if matches is not None:
                allowed, exact = intersection(allowed, matches.ranges), matches.exact
        if not len(allowed):
            return []
        rows = int((allowed[:, 1] - allowed[:, 0]).sum())
        if exact or self._pruner is None or (rows <= _FEW_ROWS and allowed is not whole):
            return [Part(allowed, not exact)]
        pruned = self._pruner.prune(
            self._reader_for(split.fragment_id), int(allowed[0, 0]), int(allowed[-1, 1]), least
        )
        if metrics is not None:
            metrics.add(zones=pruned.zones, zones_read=pruned.kept)
        parts = []
        for tested, group in groupby(pruned.ranges, key=lambda found: found.tested):
            ranges = np.array([(found.begin, found.end) for found in group], dtype=np.int64)
            ranges = ranges if allowed is whole else intersection(ranges, allowed)
            if len(ranges):
                parts.append(Part(ranges, tested))
        return parts


# What narrows a filter down is imported with the first filter: scans of all rows do without it.


def _lookup(snapshot: Snapshot, filter: Node) -> RowIdMatches | None:
    from lance_engine.scan.row_ids import match_row_ids

    return match_row_ids(filter, snapshot)


def _search(snapshot: Snapshot, filter: Node) -> IndexSearch | None:
    if snapshot.index_section is None:
        return None
    from lance_engine.index.search import search

    return search(snapshot, filter)


def _pruner(snapshot: Snapshot, filter: Node) -> Pruner:
    from lance_engine.scan.prune import Pruner

    return Pruner(filter, snapshot)


def _uses(found: IndexSearch) -> Iterator[tuple[str, str, tuple[str, ...], str, int, int]]:
    for use in found.uses:
        yield use.name, use.kind, use.columns, use.filter, use.covered, use.fragments


def pieces(reader: FragmentReader, part: Part, rows: int, borders: Sequence[int] | None) -> Iterator[Piece]:
    """A part cut into pieces of at most `rows` rows; ranges end at `borders`, where these matter."""
    ranges = part.ranges
    if len(ranges) == 1:
        begin, end = int(ranges[0, 0]), int(ranges[0, 1])
        for first, last in batch_ranges(begin, end, rows, borders or ()):
            yield Piece(reader, Selection.of_range(first, last), part.tested)
        return
    lengths = ranges[:, 1] - ranges[:, 0]
    total = int(lengths.sum())
    if total <= rows:
        yield Piece(reader, Selection.of_ranges(ranges), part.tested)
        return
    # Positions among the rows of the part, cut every `rows`, as rows again.
    ends = np.cumsum(lengths)
    for first in range(0, total, rows):
        last = min(first + rows, total)
        low, high = int(np.searchsorted(ends, first, "right")), int(np.searchsorted(ends, last, "left"))
        cut = ranges[low : high + 1].copy()
        cut[0, 0] += first - (ends[low] - lengths[low])
        cut[-1, 1] -= ends[high] - last
        yield Piece(reader, Selection.of_ranges(cut), part.tested)
