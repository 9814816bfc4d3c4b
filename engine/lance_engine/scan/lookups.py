"""Assigns the rows that are requested by address to readers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.fragment_group import FragmentGroup, FragmentGrouping
from lance_engine.scan.layout import Names
from lance_engine.scan.pool import PARALLEL_ROWS, num_threads
from lance_engine.scan.reader import RowsReader

if TYPE_CHECKING:
    from lance_engine.format.fragment import Fragment
    from lance_engine.table.snapshot import Snapshot

U64Array = npt.NDArray[np.uint64]

# Maximum number of fragments that are read as one, and rows of each: rows are numbered with 32 bits.
_GROUP_FRAGMENTS, _MOST_FRAGMENTS = 4, 1024
_MOST_ROWS = 1 << 15


class Lookup(NamedTuple):
    """Rows at ascending offsets of `reader`, and their positions in the sorted addresses."""

    reader: RowsReader
    offsets: npt.NDArray[np.uint32]
    places: npt.NDArray[np.int64]
    apart: tuple[Lookup, ...] = ()
    """The same fragment by fragment, where `reader` is of several."""


def lookups(
    snapshot: Snapshot,
    reader_for: Callable[[int], FragmentReader],
    names: Names,
    addresses: U64Array,
) -> list[Lookup]:
    """Lookups of the columns `names` that together are those of the ascending `addresses`."""
    fragments = addresses >> np.uint64(32)
    offsets = addresses.astype(np.uint32)
    places = np.arange(len(addresses))
    bounds = [0, len(addresses)]
    if fragments[0] != fragments[-1]:
        bounds[1:1] = (np.flatnonzero(np.diff(fragments)) + 1).tolist()
    pieces = 1 if len(addresses) < PARALLEL_ROWS else max(1, num_threads() // (len(bounds) - 1))
    groups = _Groups(snapshot, reader_for, names) if len(bounds) > _GROUP_FRAGMENTS else None
    alone = []
    for begin, end in pairwise(bounds):
        reader = reader_for(int(fragments[begin]))
        met_before = reader.meet()
        if groups is not None and not met_before:
            lookup = Lookup(reader, offsets[begin:end], places[begin:end])
            if groups.add(reader.fragment, lookup):
                continue
        parts = [places[begin:end]] if pieces == 1 else np.array_split(places[begin:end], pieces)
        alone += [Lookup(reader, offsets[part], part) for part in parts if len(part)]
    return alone if groups is None else alone + groups.lookups()


class _Groups:
    """Small fragments that are used for the first time and read together.

    Opening each of their files takes longer than reading a few rows. Fragments that are used again are opened
    separately, and cached.
    """

    def __init__(self, snapshot: Snapshot, reader_for: Callable[[int], FragmentReader], names: Names) -> None:
        self._snapshot = snapshot
        self._reader_for = reader_for
        self._grouping = FragmentGrouping(snapshot, names, 2 * _MOST_ROWS)
        self._groups: list[tuple[list[Fragment], list[Lookup]]] = []

    def add(self, fragment: Fragment, lookup: Lookup) -> bool:
        """Whether the rows of a fragment can be looked up together with others."""
        if not self._grouping.takes(fragment):
            return False
        group = self._groups[-1][0] if self._groups else []
        if not 0 < len(group) < _MOST_FRAGMENTS or not self._grouping.joins(group, 0, fragment):
            self._groups.append(([], []))
        fragments, lookups = self._groups[-1]
        fragments.append(fragment)
        lookups.append(lookup)
        return True

    def lookups(self) -> list[Lookup]:
        lookups = []
        for fragments, apart in self._groups:
            if len(fragments) < _GROUP_FRAGMENTS:
                lookups += apart
                continue
            starts = np.cumsum([0, *(fragment.physical_rows for fragment in fragments[:-1])])
            offsets = [lookup.offsets + start for lookup, start in zip(apart, starts.tolist(), strict=True)]
            reader = FragmentGroup(self._snapshot, fragments, self._reader_for)
            places = np.concatenate([lookup.places for lookup in apart])
            lookups.append(Lookup(reader, np.concatenate(offsets).astype(np.uint32), places, tuple(apart)))
        return lookups
