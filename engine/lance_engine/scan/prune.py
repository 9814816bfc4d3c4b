"""Which rows of a fragment a filter can match, according to zone maps, before any row is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_engine.arrow_values import of_numpy
from lance_engine.expr.statistics import ColumnStatistics, consulted_columns, match_zones
from lance_engine.expr.tree import Node
from lance_engine.lru_cache import LruCache
from lance_engine.scan.system import ROW_ADDRESS, ROW_ID

if TYPE_CHECKING:
    from lance_engine.file.zone_map import ZoneMap
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.schema_tree import Field
    from lance_engine.table.snapshot import Snapshot

I64Array = npt.NDArray[np.int64]

# Zones for row addresses where no column has zones.
_ADDRESS_ZONE_ROWS = 8192
# Number of results that a pruner keeps, if they have few ranges.
_CACHED_RESULTS, _FEW_RANGES = 64, 64


class RowRange(NamedTuple):
    """Rows [begin, end) of a fragment; `tested` says whether the filter has to be tested on them."""

    begin: int
    end: int
    tested: bool


class Pruned(NamedTuple):
    """The remaining part of a range of rows: the ranges to read, and the number of zones checked and kept."""

    ranges: list[RowRange]
    zones: int
    kept: int


class Pruner:
    """One filter over the fragments of one snapshot."""

    def __init__(self, filter: Node, snapshot: Snapshot) -> None:
        self._filter = filter
        columns = consulted_columns(filter)
        self._fields = {
            parts: field for parts in columns if (field := _stored_field(snapshot, parts)) is not None
        }
        addresses = {(ROW_ADDRESS,)} if snapshot.has_stable_row_ids else {(ROW_ADDRESS,), (ROW_ID,)}
        self._addresses = columns & addresses
        #: results by fragment and range of rows, for the next scan with the same plan
        self._known: LruCache[tuple[int, int, int, int], Pruned] = LruCache(_CACHED_RESULTS)

    @property
    def is_of_use(self) -> bool:
        """Whether zones can decide the filter at all: for ``a % 7 = 0`` they cannot."""
        return bool(self._fields or self._addresses)

    def prune(self, reader: FragmentReader, begin: int, end: int, least: int) -> Pruned:
        """The rows of [begin, end) that the filter may match.

        Rows on which the filter need not be tested make a separate range from `least` rows on.
        """
        place = reader.fragment.id, begin, end, least
        pruned = self._known.get(place)
        if pruned is None:
            pruned = self._pruned(reader, begin, end, least)
            if len(pruned.ranges) <= _FEW_RANGES:
                self._known[place] = pruned
        return pruned

    def _pruned(self, reader: FragmentReader, begin: int, end: int, least: int) -> Pruned:
        if begin >= end:
            return Pruned([], 0, 0)
        absent = [parts for parts, field in self._fields.items() if not reader.holds(field)]
        maps: dict[tuple[str, ...], ZoneMap] = {}
        for parts, field in self._fields.items():
            zone_map = reader.zone_map(field, ".".join(parts)) if parts not in absent else None
            if zone_map is not None:
                maps[parts] = zone_map
        if not (maps or absent or self._addresses):
            return Pruned([RowRange(begin, end, True)], 0, 0)
        steps = {zone_map.rows_per_zone for zone_map in maps.values()}
        starts = _starts(steps or {_ADDRESS_ZONE_ROWS}, reader.rows)
        # Only the zones that overlap [begin, end).
        first = int(np.searchsorted(starts, begin, "right")) - 1
        starts = starts[first : int(np.searchsorted(starts, end, "left"))]
        edges = np.append(starts, min(end, reader.rows))
        statistics = {parts: _at(zone_map, starts) for parts, zone_map in maps.items()}
        for parts in absent:
            statistics[parts] = _all_null(len(starts))
        for parts in self._addresses:
            statistics[parts] = _addresses(reader.fragment.id, starts, edges[1:])
        matches = match_zones(self._filter, statistics, len(starts))
        edges[0] = begin
        ranges = _ranges(edges, matches.may, matches.must, least)
        return Pruned(ranges, len(starts), int(matches.may.sum()))


def _stored_field(snapshot: Snapshot, parts: tuple[str, ...]) -> Field | None:
    """The leaf that a path leads to through structs; None for other paths."""
    siblings = snapshot.schema.fields
    child: Field | None = None
    for part in parts:
        child = next((field for field in siblings if field.name == part), None)
        if child is None or child.is_packed:
            return None
        siblings = child.children
    return child if child is not None and child.is_leaf else None


def _starts(steps: set[int], rows: int) -> I64Array:
    """The first rows of zones within which every column has the same statistics."""
    starts = [np.arange(0, rows, step, dtype=np.int64) for step in steps]
    return starts[0] if len(starts) == 1 else np.unique(np.concatenate(starts))


def _at(zone_map: ZoneMap, starts: I64Array) -> ColumnStatistics:
    """The statistics of the zones, or parts of zones, that begin at `starts`."""
    if np.array_equal(starts, zone_map.starts):
        return zone_map.statistics
    return zone_map.statistics.take(starts // zone_map.rows_per_zone)


def _all_null(zones: int) -> ColumnStatistics:
    rows = np.ones(zones, dtype=np.int64)
    return ColumnStatistics.from_counts(rows, null_count=rows)


def _addresses(fragment: int, starts: I64Array, stops: I64Array) -> ColumnStatistics:
    first = np.uint64(fragment << 32)
    minimum, maximum = (of_numpy(rows.astype(np.uint64) + first) for rows in (starts, stops - 1))
    none = np.zeros(len(starts), dtype=np.int64)
    return ColumnStatistics.from_counts(stops - starts, minimum, maximum, none)


def _ranges(
    edges: I64Array, may: npt.NDArray[np.bool_], must: npt.NDArray[np.bool_], least: int
) -> list[RowRange]:
    """Neighbouring zones of the same kind as ranges; a few untested rows join tested ones."""
    ranges: list[RowRange] = []
    tested = may & ~must
    changes = np.flatnonzero((may[1:] != may[:-1]) | (tested[1:] != tested[:-1])) + 1
    firsts = np.concatenate(([0], changes)).tolist()
    lasts = np.concatenate((changes, [len(may)])).tolist()
    runs = [
        RowRange(int(edges[first]), int(edges[last]), bool(tested[first]))
        for first, last in zip(firsts, lasts, strict=True)
        if may[first]
    ]
    for number, run in enumerate(runs):
        following = runs[number + 1] if number + 1 < len(runs) else None
        if not run.tested and run.end - run.begin < least:
            beside = (ranges and ranges[-1].end == run.begin and ranges[-1].tested) or (
                following is not None and following.begin == run.end and following.tested
            )
            run = run._replace(tested=bool(beside))
        if ranges and ranges[-1].end == run.begin and ranges[-1].tested == run.tested:
            ranges[-1] = ranges[-1]._replace(end=run.end)
        else:
            ranges.append(run)
    return ranges
