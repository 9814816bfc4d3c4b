"""Determines which rows a scan has to read, from row ids, indices and zone maps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lance_engine.fetch import MOST_AHEAD, ordered_ahead
from lance_engine.index.ranges import intersection
from lance_engine.lru_cache import LruCache
from lance_engine.metrics import IndexMetrics, ScanMetrics, counting
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.projection import Projection
from lance_engine.scan.reader import RowsReader
from lance_engine.scan.selection import I64Array, Selection
from lance_engine.scan.splits import ScanSplit, batch_ranges

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.format.fragment import Fragment
    from lance_engine.index.search import IndexSearch
    from lance_engine.scan.fetching import Ticket
    from lance_engine.scan.filter import FilterSteps
    from lance_engine.scan.prune import Pruner
    from lance_engine.scan.row_ids import RowIdMatches
    from lance_engine.table.snapshot import Snapshot

# Up to this many rows are read faster than the zone maps of their fragment.
_FEW_ROWS = 1024
# So are those of every fragment of this many rows, where more than that many are scanned and read together.
_SMALL_FRAGMENT, _FEW_FRAGMENTS = 8192, 16
# Number of other plans for which a plan keeps the joined one.
_CACHED_JOINED = 4


class RowRanges(NamedTuple):
    """Ascending disjoint ranges of rows, shape (n, 2); `tested`: the filter has to be tested on them."""

    ranges: I64Array
    tested: bool

    @property
    def rows(self) -> int:
        """How many rows these are."""
        if len(self.ranges) == 1:
            begin, end = self.ranges[0].tolist()
            return int(end - begin)
        return int((self.ranges[:, 1] - self.ranges[:, 0]).sum())


class Piece(NamedTuple):
    """Rows of a reader that are read at once."""

    reader: RowsReader
    selection: Selection
    tested: bool
    ticket: Ticket | None = None
    """What holds the bytes that were fetched ahead for the rows, where that is done."""
    projection: Projection | None = None
    """What alone reads these rows, one range, without the interpreter; None where there is more to do."""

    def cut(self, rows: int) -> Iterator[Piece]:
        """Pieces of at most `rows` rows, where this one is a range; else it is of the size of a batch."""
        if not self.selection.is_range or self.selection.count <= rows:
            yield self
            return
        for begin, end in batch_ranges(self.selection.begin, self.selection.end, rows, ()):
            yield self._replace(selection=Selection.of_range(begin, end))


class FilterPlan:
    """A filter, with the results of row ids, indices and zone maps, which all its scans share."""

    def __init__(
        self,
        filter: Node,
        snapshot: Snapshot,
        *,
        zone_maps: bool = True,
        indices: bool = True,
        parts: Sequence[FilterPlan] = (),
    ) -> None:
        """`parts` are plans, created with the same options, of the conditions whose conjunction is `filter`.

        Their results are reused.
        """
        self.filter = filter
        self.snapshot = snapshot
        self.lookup = _joined_lookup(parts) if parts else _lookup(snapshot, filter)
        #: the filter to test on rows for which neither an index nor a zone map makes that unnecessary
        self.tested = filter if self.lookup is None else self.lookup.residual
        self.indexed: IndexSearch | None = None
        if indices and self.tested is not None:
            self.indexed = _joined_search(snapshot, parts) if parts else _search(snapshot, self.tested)
        self.pruner = _pruner(snapshot, self.tested) if zone_maps and self.tested is not None else None
        self._joined: LruCache[tuple[FilterPlan, ...], FilterPlan] = LruCache(_CACHED_JOINED)

    @cached_property
    def steps(self) -> FilterSteps | None:
        """How rows are tested; later scans begin with what earlier ones found about the conditions."""
        return None if self.tested is None else _steps(self.snapshot, self.tested)

    def without_zone_maps(self) -> FilterPlan:
        """The same plan for a few rows, which are tested sooner than their zones."""
        _ = self.steps  # shared
        plan = copy.copy(self)
        plan.pruner = None
        return plan

    def joined(self, others: tuple[FilterPlan, ...], join: Callable[[], FilterPlan]) -> FilterPlan:
        """The plan for all of these filters, made by `join` and kept for the next scan with the same ones."""
        plan = self._joined.get(others)
        if plan is None:
            plan = join()
            if plan is not self:
                self._joined[others] = plan
        return plan


class ScanPlan:
    """The remaining rows of a snapshot, or of some splits of it, for a filter."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        filter: FilterPlan | None,
        splits: Sequence[ScanSplit] | None,
        *,
        read_together: Callable[[Fragment], bool] = lambda _: False,
    ) -> None:
        """`read_together` decides whether the files of small fragments are opened together."""
        self._snapshot = snapshot
        self._read_together = read_together
        self._reader_for = reader_for
        self._splits = splits
        #: the ranges of few splits, kept for scans that run again
        self._few: list[tuple[Fragment, int, int]] | None = None
        #: the filter to test on rows for which neither an index nor a zone map makes that unnecessary
        self.filter = None if filter is None else filter.tested
        self._lookup = None if filter is None else filter.lookup
        self._indexed = None if filter is None else filter.indexed
        self._pruner = None if filter is None else filter.pruner

    def leaves_at_most(self, rows: int) -> bool:
        """Whether row ids or an index exclude all rows."""
        if self._lookup is not None:
            ranges = self._lookup.addresses
            return int((ranges[:, 1] - ranges[:, 0]).sum()) <= rows
        if self._indexed is None:
            return False
        fragments = self._snapshot.fragments
        matches = self._indexed.matches
        if len(fragments) > _FEW_FRAGMENTS or any(fragment.id not in matches for fragment in fragments):
            return False
        return sum(int((match.ranges[:, 1] - match.ranges[:, 0]).sum()) for match in matches.values()) <= rows

    def fragments(
        self, least: int, metrics: ScanMetrics | None = None, first: int = MOST_AHEAD
    ) -> Iterator[tuple[Fragment, list[RowRanges]]]:
        """The remaining rows of each fragment or split; those without any are left out.

        Rows on which the filter need not be tested make a separate part from `least` rows on. Of
        fragments that are not local, `first` are looked at together to begin with.
        """
        fragments, rows = self._extent()
        if metrics is not None:
            metrics.add(fragments=fragments, rows=rows)
            if self._indexed is not None:
                metrics.indices = [IndexMetrics(*use) for use in _uses(self._indexed)]
        seen: set[int] = set()
        many = (fragments if self._splits is None else len(self._splits)) > _FEW_FRAGMENTS

        def left(clamped: tuple[Fragment, int, int]) -> list[RowRanges]:
            fragment, start, stop = clamped
            cheap = many and fragment.physical_rows <= _SMALL_FRAGMENT and self._read_together(fragment)
            with counting(metrics):
                return self._parts(fragment.id, start, stop, None if cheap else self._pruner, least, metrics)

        planned: Iterator[tuple[tuple[Fragment, int, int], list[RowRanges]]]
        if self._pruner is None or self._snapshot.is_local:
            planned = ((clamped, left(clamped)) for clamped in self._clamped())
        else:  # zone maps are fetched for many fragments at a time
            planned = ordered_ahead(left, iter(self._clamped()), first)
        for (fragment, start, stop), parts in planned:
            if metrics is not None:
                # Counted at once: readers in between must not see rows as skipped.
                metrics.add(
                    fragments_read=bool(parts) and fragment.id not in seen,
                    rows_planned=stop - start,
                    rows_left=sum(part.rows for part in parts),
                    rows_untested=sum(part.rows for part in parts if not part.tested),
                )
            if not parts:
                continue
            seen.add(fragment.id)
            yield fragment, parts

    def _extent(self) -> tuple[int, int]:
        """The total number of fragments and rows."""
        if self._splits is None:
            return len(self._snapshot.fragments), self._snapshot.physical_rows
        rows = sum(max(0, stop - start) for _, start, stop in self._clamped())
        return len({split.fragment_id for split in self._splits}), rows

    def _clamped(self) -> Iterable[tuple[Fragment, int, int]]:
        """The ranges [start, stop) of rows of the splits, limited to existing rows.

        Fragments are described one by one, so that callers who need few rows do not wait for all of them.
        """
        if self._few is None and self._splits is not None and len(self._splits) <= _FEW_FRAGMENTS:
            self._few = list(self._described())
        return self._described() if self._few is None else self._few

    def _described(self) -> Iterator[tuple[Fragment, int, int]]:
        if self._splits is None:
            for fragment in self._snapshot.fragments:
                yield fragment, 0, fragment.physical_rows
            return
        for split in self._splits:
            fragment = self._snapshot.fragment(split.fragment_id)
            yield fragment, split.start, min(split.stop, fragment.physical_rows)

    def _parts(
        self,
        fragment_id: int,
        start: int,
        stop: int,
        pruner: Pruner | None,
        least: int,
        metrics: ScanMetrics | None,
    ) -> list[RowRanges]:
        whole = np.array([[start, stop]], dtype=np.int64)
        allowed, exact = whole, self.filter is None
        if start >= stop:
            return []
        if self._lookup is not None:
            allowed = intersection(allowed, self._lookup.in_fragment(fragment_id))
        if self._indexed is not None:
            matches = self._indexed.matches.get(fragment_id)
            if matches is not None:
                allowed, exact = intersection(allowed, matches.ranges), matches.exact
        if not len(allowed):
            return []
        rows = int((allowed[:, 1] - allowed[:, 0]).sum())
        if exact or pruner is None or (rows <= _FEW_ROWS and allowed is not whole):
            return [RowRanges(allowed, not exact)]
        pruned = pruner.prune(self._reader_for(fragment_id), int(allowed[0, 0]), int(allowed[-1, 1]), least)
        if metrics is not None:
            metrics.add(zones=pruned.zones, zones_read=pruned.kept)
        parts = []
        for tested, group in groupby(pruned.ranges, key=lambda piece: piece.tested):
            ranges = np.array([(piece.begin, piece.end) for piece in group], dtype=np.int64)
            ranges = ranges if allowed is whole else intersection(ranges, allowed)
            if len(ranges):
                parts.append(RowRanges(ranges, tested))
        return parts


# Imported with the first filter, because scans of all rows do not need it.


def _lookup(snapshot: Snapshot, filter: Node) -> RowIdMatches | None:
    from lance_engine.scan.row_ids import match_row_ids

    return match_row_ids(filter, snapshot)


def _search(snapshot: Snapshot, filter: Node) -> IndexSearch | None:
    if snapshot.index_section is None:
        return None
    from lance_engine.index.search import search

    return search(snapshot, filter)


def _joined_lookup(parts: Sequence[FilterPlan]) -> RowIdMatches | None:
    """The rows that the lookups of all parts allow, None if there are no lookups."""
    from lance_engine.expr.build import conjunction

    lookups = [part.lookup for part in parts if part.lookup is not None]
    if not lookups:
        return None
    addresses = reduce(intersection, (lookup.addresses for lookup in lookups))
    tested = [part.tested for part in parts if part.tested is not None]
    return lookups[0]._replace(addresses=addresses, residual=conjunction(tested) if tested else None)


def _joined_search(snapshot: Snapshot, parts: Sequence[FilterPlan]) -> IndexSearch | None:
    """The index results for all parts; those that were not useful for single parts may be useful together."""
    from lance_engine.expr.build import conjunction

    searches = [part.indexed for part in parts if part.indexed is not None]
    others = [part.tested for part in parts if part.indexed is None and part.tested is not None]
    if len(others) > 1:
        together = _search(snapshot, conjunction(others))
        if together is not None:
            searches.append(together)
            others = []
    if not searches:
        return None
    from lance_engine.index.search import joined_searches

    return joined_searches(searches, complete=not others)


def _pruner(snapshot: Snapshot, filter: Node) -> Pruner | None:
    from lance_engine.scan.prune import Pruner

    pruner = Pruner(filter, snapshot)
    return pruner if pruner.is_of_use else None


def _steps(snapshot: Snapshot, tested: Node) -> FilterSteps:
    from lance_engine.scan.filter import FilterSteps

    return FilterSteps(tested, snapshot.schema)


def _uses(search: IndexSearch) -> Iterator[tuple[str, str, tuple[str, ...], str, int, int]]:
    for use in search.uses:
        yield use.name, use.kind, use.columns, use.filter, use.covered, use.fragments


def pieces(reader: RowsReader, part: RowRanges, rows: int, borders: Sequence[int] | None) -> Iterator[Piece]:
    """A part divided into pieces of at most `rows` rows; ranges end at `borders`, if these matter."""
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
