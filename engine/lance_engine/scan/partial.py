"""Scans of parts of a version: of some fragments, or of the rows that may pass a filter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow.compute as pc

from lance_engine.expr.tree import Node
from lance_engine.format.fragment import Fragment
from lance_engine.scan.fragment import FragmentReader
from lance_engine.scan.plan import FilterPlan, ScanPlan
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit
from lance_engine.table.snapshot import Snapshot

Filter: TypeAlias = "str | pc.Expression | Node | None"

# Maximum gap in rows between ranges that are read together.
_JOINED_ROWS = 4096

ReaderFor: TypeAlias = Callable[[int], FragmentReader]


def shared_readers(snapshot: Snapshot) -> ReaderFor:
    """The reader of each fragment by its id; created once."""
    readers: dict[int, FragmentReader] = {}

    def reader(fragment_id: int) -> FragmentReader:
        shared = readers.get(fragment_id)
        if shared is None:
            opened = FragmentReader(snapshot, snapshot.fragment(fragment_id))
            shared = readers.setdefault(fragment_id, opened)
        return shared

    return reader


def scan(
    snapshot: Snapshot,
    columns: Sequence[str] | None = None,
    filter: Filter = None,
    fragments: Iterable[Fragment] | None = None,
    splits: Sequence[ScanSplit] | None = None,
    reader_for: ReaderFor | None = None,
) -> Scanner:
    """A scan of all fragments, of some, or of some ranges of rows."""
    if fragments is not None:
        splits = [ScanSplit(fragment.id, 0, fragment.physical_rows) for fragment in fragments]
    reader_for = reader_for or shared_readers(snapshot)
    return Scanner(snapshot, reader_for, columns=columns, filter=filter, splits=splits)


def rows_that_may_pass(snapshot: Snapshot, filter: Node, reader_for: ReaderFor) -> list[ScanSplit]:
    """Ascending ranges that contain all rows that pass, according to indices and zone maps.

    Ranges with small gaps are merged, because reading the gap costs less.
    """
    plan = ScanPlan(snapshot, reader_for, FilterPlan(filter, snapshot), None)
    splits: list[ScanSplit] = []
    for fragment, parts in plan.fragments(_JOINED_ROWS):
        number = fragment.id
        for begin, end in np.concatenate([part.ranges for part in parts]).tolist():
            if splits and splits[-1].fragment_id == number and begin - splits[-1].stop <= _JOINED_ROWS:
                splits[-1] = dataclasses.replace(splits[-1], stop=end)
            else:
                splits.append(ScanSplit(number, begin, end))
    return splits
