"""Which rows a filter can match, according to the indices of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.expr.statistics import ZoneMatch
from lance_engine.expr.tree import And, In, Node, Not, Or
from lance_engine.expr.value_types import value_type
from lance_engine.format.row_id_map import distinct
from lance_engine.index.files import index_errors, opened_together
from lance_engine.index.kind import RowFinder, RowFinderKind, U64Array, ZoneFinder, column_of, is_plain
from lance_engine.index.live_zones import Zones
from lance_engine.index.ranges import EMPTY, intersection, ranges_of, union
from lance_engine.index.registry import READ
from lance_engine.index.segments import (
    CoveringSegment,
    Indices,
    TableIndex,
    holds_addresses,
    usable_indices,
)

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


class FragmentMatches(NamedTuple):
    """The result of indices for one fragment.

    `ranges` is an int64 array of shape (n, 2): ascending, disjoint half-open ranges of physical rows; live
    rows outside of them do not match. With `exact`, every live row in them matches the whole filter.
    """

    ranges: npt.NDArray[np.int64]
    exact: bool


class IndexUse(NamedTuple):
    """An index was used for the part `filter` of a filter, for `covered` of `fragments` fragments."""

    name: str
    kind: str
    columns: tuple[str, ...]
    covered: int
    fragments: int
    filter: str


class IndexSearch(NamedTuple):
    """Matches by fragment id: a missing fragment is not covered and has to be scanned."""

    matches: Mapping[int, FragmentMatches]
    uses: tuple[IndexUse, ...]


# Maximum share of covered rows for a row index to be useful: beyond that, reading and testing the column
# costs less than fetching, sorting and grouping the rows. A small number of rows is always worthwhile.
MAX_SHARE: Final = 1 / 20
FEW_ROWS: Final = 4096
# Minimum share of covered rows that a zone index must exclude to be useful.
MIN_EXCLUDED_SHARE: Final = 1 / 5
# Another index of a conjunction is searched if it returns at most this many rows more, or this many times the
# rows of the best one: otherwise testing the rows of the best one costs less.
_EXTRA_ROWS: Final = 16384
_EXTRA_FACTOR: Final = 16
# Maximum number of list values shown in explanations.
_LISTED: Final = 8

_NOTHING: Final = FragmentMatches(EMPTY, True)

Found = dict[int, FragmentMatches]


def search(snapshot: Snapshot, filter: Node) -> IndexSearch | None:
    """The result of the indices of `snapshot` for `filter`; None if no index is useful.

    Whether the columns have an index is decided from the manifest, without reading any file. An index that
    would not make the scan faster is not used. CorruptFileError if an index file is damaged.
    """
    indices = usable_indices(snapshot)
    if not indices:
        return None
    searcher = _Searcher(snapshot, indices)
    matches = searcher.search(filter)
    return None if matches is None else IndexSearch(matches, tuple(searcher.uses))


def joined_searches(searches: Sequence[IndexSearch], *, complete: bool) -> IndexSearch:
    """The combined result for the conjunction of filters that were searched one by one.

    Without `complete` there are other conditions, so all rows still have to be tested.
    """
    matches = _in_all([search.matches for search in searches], complete)
    return IndexSearch(matches, tuple(use for search in searches for use in search.uses))


class _Searcher:
    """A search; collects which indices were useful."""

    def __init__(self, snapshot: Snapshot, indices: Indices) -> None:
        self._snapshot = snapshot
        self._indices = indices
        self.uses: list[IndexUse] = []

    def search(self, node: Node) -> Found | None:
        plan = self._plan(node)
        return None if plan is None else plan.find()

    def _plan(self, node: Node) -> _Plan | None:
        column = column_of(node)
        if column is not None and (is_plain(node) or not isinstance(node, (And, Or))):
            lookup = self._lookup(column.parts, node)
            return lookup or self._lookup(column.parts[:-1], node, reads_fields=True)
        if isinstance(node, And):
            plans = [self._plan(part) for part in _by_column(node)]
            complete = None not in plans
            served: list[_Plan] = [plan for plan in plans if plan is not None]
            served += self._of_fields(node)
            return _Conjunction(served, complete) if served else None
        if isinstance(node, Or):
            plans = [self._plan(operand) for operand in node.operands]
            served = [plan for plan in plans if plan is not None]
            return _Disjunction(served) if len(served) == len(plans) else None
        return None

    def _of_fields(self, node: And) -> Iterator[_Lookup]:
        """Indices on structs for operands that refer to several of their fields."""
        owners = [(column_of(operand), operand) for operand in node.operands]
        for struct in sorted({column.parts[:-1] for column, _ in owners if column is not None}):
            parts = [part for column, part in owners if column is not None and column.parts[:-1] == struct]
            lookup = self._lookup(struct, And(tuple(parts)), reads_fields=True) if len(parts) > 1 else None
            if lookup is not None:
                yield lookup

    def _lookup(self, parts: tuple[str, ...], node: Node, *, reads_fields: bool = False) -> _Lookup | None:
        """The best index for a predicate on a column, or on its fields."""
        able = [
            index
            for index in self._indices.get(parts, ())
            if _reads_fields(index) == reads_fields and index.kind.answers(node)
        ]
        for index in sorted(able, key=_preference):
            lookup = _Lookup(self, self._snapshot, index, node)
            if lookup.is_useful:
                return lookup
        return None


class _Plan(Protocol):
    """A part of the filter that indices support."""

    @property
    def rows(self) -> int:
        """The estimated number of rows that it returns."""
        ...

    def find(self) -> Found:
        """The matches in the fragments that are covered."""
        ...


class _Lookup:
    """One index and the predicate on its column that it answers."""

    def __init__(self, searcher: _Searcher, snapshot: Snapshot, index: TableIndex, node: Node) -> None:
        self._searcher, self._snapshot = searcher, snapshot
        self._index, self._node = index, node
        self._opened: list[tuple[CoveringSegment, RowFinder | ZoneFinder]] = []
        self._matches: list[ZoneMatch] = []
        self.rows = 0
        self.is_useful = False
        try:
            self._opened += opened_together(index.segments, lambda segment: segment.open(index.kind))
        except UnsupportedFeatureError:
            return  # of an old release: what it covers is scanned
        entry_type = index.kind.entry_type(index.column_type)
        self.is_useful = all(_fits(finder.value_type, entry_type) for _, finder in self._opened)
        if self.is_useful:
            total = self._covered_rows()
            if isinstance(index.kind, RowFinderKind):
                self.is_useful = self._estimate_rows(total)
            else:
                self.is_useful = self._match_zones()

    def find(self) -> Found:
        covered = self._index.covered
        shown = _shown(self._node)
        self._searcher.uses.append(
            IndexUse(
                self._index.name,
                self._index.kind.name,
                (".".join(self._index.parts),),
                len(covered),
                len(self._snapshot.fragments),
                shown,
            )
        )
        matches: Found = {}
        for number, (segment, finder) in enumerate(self._opened):
            matches |= dict.fromkeys(segment.fragments, _NOTHING)
            if isinstance(self._index.kind, RowFinderKind):
                ids = cast(RowFinder, finder).find(self._node)
                addresses = self._addresses(self._index.kind, segment, ids)
                # Old releases left entries of updated rows: those rows are tested again.
                by_address = holds_addresses(self._snapshot, self._index.kind, segment.segment)
                exact = self._index.kind.is_exact and by_address
                matches |= _by_fragment(self._snapshot, segment, addresses, exact)
            else:
                matches |= _zones_by_fragment(cast(ZoneFinder, finder).zones, segment, self._matches[number])
        return matches

    def _covered_rows(self) -> int:
        return sum(self._snapshot.fragment(fragment).physical_rows for fragment in self._index.covered)

    def _estimate_rows(self, total: int) -> bool:
        limit = max(FEW_ROWS, int(total * MAX_SHARE))
        for _, finder in self._opened:
            self.rows += cast(RowFinder, finder).estimate(self._node, total)
            if self.rows > limit:
                return False
        return True

    def _match_zones(self) -> bool:
        held = kept = 0
        for _, finder in self._opened:
            zones = cast(ZoneFinder, finder)
            match = zones.match(self._node)
            if match is None:
                return False
            lengths = zones.zones.ends - zones.zones.starts
            held += int(lengths.sum())
            kept += int(lengths[match.may].sum())
            self._matches.append(match)
        self.rows = kept
        return kept <= held * (1 - MIN_EXCLUDED_SHARE)

    def _addresses(self, kind: RowFinderKind, segment: CoveringSegment, ids: U64Array) -> U64Array:
        if not len(ids) or holds_addresses(self._snapshot, kind, segment.segment):
            return ids
        # Deleted or moved rows are in fragments that the segment does not cover.
        return self._snapshot.find_row_ids(ids)


class _Conjunction:
    """Plans that must all match."""

    def __init__(self, plans: list[_Plan], complete: bool) -> None:
        ordered = sorted(plans, key=lambda plan: plan.rows)
        limit = max(_EXTRA_ROWS, _EXTRA_FACTOR * ordered[0].rows)
        self._plans = [plan for plan in ordered if plan.rows <= limit]
        self._complete = complete and len(self._plans) == len(plans)
        self.rows = ordered[0].rows

    def find(self) -> Found:
        return _in_all([plan.find() for plan in self._plans], self._complete)


class _Disjunction:
    """Plans of which at least one must match; only useful if all cover the fragment."""

    def __init__(self, plans: list[_Plan]) -> None:
        self._plans = plans
        self.rows = sum(plan.rows for plan in plans)

    def find(self) -> Found:
        parts = [plan.find() for plan in self._plans]
        in_any: Found = {}
        for fragment in set.intersection(*(set(part) for part in parts)):
            matches = [part[fragment] for part in parts]
            held = [match for match in matches if len(match.ranges)]
            exact = all(match.exact for match in held)
            in_any[fragment] = FragmentMatches(union([match.ranges for match in held]), exact)
        return in_any


def _in_all(parts: Sequence[Mapping[int, FragmentMatches]], complete: bool) -> Found:
    """The rows that are in all `parts`; without `complete` there are conditions besides these."""
    in_all: Found = {}
    for part in parts:
        for fragment, matches in part.items():
            held = in_all.get(fragment)
            in_all[fragment] = matches if held is None else _both(held, matches)
    # Conditions of a part that does not cover a fragment still have to be tested there.
    everywhere = set.intersection(*(set(part) for part in parts)) if complete else set()
    return {
        fragment: matches
        if fragment in everywhere or not len(matches.ranges)
        else FragmentMatches(matches.ranges, False)
        for fragment, matches in in_all.items()
    }


def _both(left: FragmentMatches, right: FragmentMatches) -> FragmentMatches:
    return FragmentMatches(intersection(left.ranges, right.ranges), left.exact and right.exact)


def _by_column(node: And) -> list[Node]:
    """The operands, with those on the same column combined."""
    grouped: dict[tuple[str, ...], list[Node]] = {}
    others: list[Node] = []
    for operand in node.operands:
        column = column_of(operand)
        if column is not None and is_plain(operand):
            grouped.setdefault(column.parts, []).append(operand)
        else:
            others.append(operand)
    joined = [And(tuple(parts)) if len(parts) > 1 else parts[0] for parts in grouped.values()]
    return joined + others


def _reads_fields(index: TableIndex) -> bool:
    return isinstance(index.kind, RowFinderKind) and index.kind.reads_fields


def _preference(index: TableIndex) -> int:
    return READ.index(index.kind)


def _fits(kind: pa.DataType | None, expected: pa.DataType) -> bool:
    """Whether the values of an index have the type of the filter's constants."""
    return kind is None or value_type(kind) == value_type(expected)


def _by_fragment(snapshot: Snapshot, segment: CoveringSegment, addresses: U64Array, exact: bool) -> Found:
    """Rows as ranges of the fragments for which a segment is searched."""
    if not len(addresses):
        return {}
    addresses = distinct(addresses)
    fragments = addresses >> np.uint64(32)
    starts = np.flatnonzero(np.append(True, fragments[1:] != fragments[:-1]))
    by_fragment: Found = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(addresses)], strict=True):
        fragment = int(fragments[start])
        if fragment not in segment.fragments:
            continue
        ranges = ranges_of(addresses[start:end] & np.uint64(2**32 - 1))
        _check(snapshot, segment, fragment, ranges)
        by_fragment[fragment] = FragmentMatches(ranges, exact)
    return by_fragment


def _zones_by_fragment(zones: Zones, segment: CoveringSegment, match: ZoneMatch) -> Found:
    """The zones that may match as ranges of fragments; exact where every row of them matches."""
    kept = np.flatnonzero(match.may)
    if not len(kept):
        return {}
    kept = kept[np.argsort(zones.fragment_ids[kept], kind="stable")]
    fragments = zones.fragment_ids[kept]
    starts = np.flatnonzero(np.append(True, fragments[1:] != fragments[:-1]))
    by_fragment: Found = {}
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(kept)], strict=True):
        here = kept[start:end]
        fragment = int(fragments[start])
        if fragment in segment.fragments:
            ranges = np.stack([zones.starts[here], zones.ends[here]], axis=1)
            by_fragment[fragment] = FragmentMatches(union([ranges]), bool(match.must[here].all()))
    return by_fragment


def _check(
    snapshot: Snapshot, segment: CoveringSegment, fragment: int, ranges: npt.NDArray[np.int64]
) -> None:
    rows = snapshot.fragment(fragment).physical_rows
    if int(ranges[-1, 1]) > rows:
        with index_errors(segment.segment.name):
            raise CorruptFileError(
                f"Row {int(ranges[-1, 1]) - 1} is listed, but the fragment has {rows} rows",
                path=snapshot.uri,
                fragment=fragment,
            )


def _shown(node: Node) -> str:
    """The text of a predicate, with long lists of values shortened."""
    if isinstance(node, In) and len(node.values) > _LISTED:
        return f"{node.operand} IN ({len(node.values)} values)"
    if isinstance(node, Not):
        return f"NOT ({_shown(node.operand)})"
    if isinstance(node, (And, Or)):
        word = " AND " if isinstance(node, And) else " OR "
        return word.join(
            f"({_shown(part)})" if isinstance(part, Or) else _shown(part) for part in node.operands
        )
    return str(node)
