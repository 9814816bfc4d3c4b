"""Finds duplicates of a key: among new rows, and between new rows and those that a version has already.

Hashes of the new keys are kept in memory, 8 bytes for each; more than some millions of them are looked at in
turns. Only rows with the same hash are compared by value.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_engine.arrow_values import plain
from lance_engine.constraints.candidates import KeyBounds, possible_rows
from lance_engine.constraints.hashes import HashSet, U64Array, key_hashes
from lance_engine.expr.tree import Node
from lance_engine.scan.partial import ReaderFor, scan
from lance_engine.table.constraints import Key
from lance_engine.table.snapshot import Snapshot

#: New rows whose hashes are in memory at once.
TURN_ROWS: Final = 1 << 24
# Hashes whose rows are compared by value at once; and the number of duplicates that are reported.
_COMPARED: Final = 1000
_REPORTED: Final = 5


@dataclasses.dataclass(frozen=True)
class Duplicates:
    """Some keys that occur more than once; `newer` if each does only because of rows of others."""

    keys: tuple[tuple[Any, ...], ...]
    newer: bool


class NewKeys:
    """The keys of the rows of new fragments, for one attempt to commit them or several."""

    def __init__(
        self, key: Key, version: Snapshot, fragments: Collection[int], reader_for: ReaderFor
    ) -> None:
        self._key = key
        self._names = list(key.columns)
        rows = sum(f.physical_rows for f in version.fragments if f.id in fragments)
        self._turns = max(1, -(-rows // TURN_ROWS))
        self._held: tuple[HashSet, U64Array] | None = None
        self._bounds: KeyBounds | None = None
        self._version = version
        self._fragments = frozenset(fragments)
        self._reader_for = reader_for

    def renumbered(self, version: Snapshot, fragments: Collection[int], reader_for: ReaderFor) -> None:
        """The same rows are in fragments of another version now."""
        self._version, self._fragments, self._reader_for = version, frozenset(fragments), reader_for

    def duplicates(self, known: Collection[int], newer: Collection[int]) -> Duplicates | None:
        """Duplicates among the new rows, and of rows in the fragments with the ids `known` and `newer`."""
        others = frozenset(known) | frozenset(newer)
        for turn in range(self._turns):
            held, twice = self._hashes(turn)
            if not len(held.hashes):
                continue
            suspects = [twice]
            for batch in self._possible(others):
                hashes, _ = self._of_turn(batch, turn)
                suspects.append(hashes[held.among(hashes)])
            suspected = np.unique(np.concatenate(suspects))
            for start in range(0, len(suspected), _COMPARED):
                compared = self._compared(HashSet(suspected[start : start + _COMPARED]), known, newer)
                if compared is not None:
                    return compared
        return None

    def _hashes(self, turn: int) -> tuple[HashSet, U64Array]:
        """The hashes of the new keys of a turn, and those that occur more than once."""
        if self._held is not None:
            return self._held
        bounds = KeyBounds(self._names) if self._bounds is None else None
        parts = []
        for batch in self._new():
            if bounds is not None:
                bounds.add(batch.columns)
            parts.append(self._of_turn(batch, turn)[0])
        hashes = np.concatenate(parts) if parts else np.empty(0, np.uint64)
        hashes.sort()
        held = HashSet(hashes), hashes[1:][hashes[1:] == hashes[:-1]]
        self._bounds = self._bounds or bounds
        if self._turns == 1:
            self._held = held
        return held

    def _of_turn(self, batch: pa.RecordBatch, turn: int) -> tuple[U64Array, Any]:
        hashes, rows = key_hashes(batch.columns)
        if self._turns == 1:
            return hashes, rows
        here = hashes % np.uint64(self._turns) == turn
        return hashes[here], rows[here]

    def _new(self) -> Iterator[pa.RecordBatch]:
        fragments = [f for f in self._version.fragments if f.id in self._fragments]
        rows = scan(self._version, self._names, fragments=fragments, reader_for=self._reader_for)
        return rows.to_batches()

    def _possible(self, fragments: Collection[int]) -> Iterator[pa.RecordBatch]:
        if not fragments:
            return iter(())
        filter: Node | None = None
        if self._bounds is not None:
            filter = self._bounds.filter(self._version.schema.to_arrow())
        return possible_rows(self._version, self._names, filter, self._reader_for, fragments)

    def _compared(
        self, suspects: HashSet, known: Collection[int], newer: Collection[int]
    ) -> Duplicates | None:
        """Which keys with one of some hashes do occur more than once."""

        def counted(batches: Iterator[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
            counts: Counter[tuple[Any, ...]] = Counter()
            for batch in batches:
                hashes, rows = key_hashes(batch.columns)
                taken = batch.take(pa.array(rows[suspects.among(hashes)]))
                counts.update(zip(*map(_comparable, taken.columns), strict=True))
            return counts

        new, old, later = counted(self._new()), counted(self._possible(known)), counted(self._possible(newer))
        own = [key for key, count in new.items() if count > 1 or key in old]
        others = [key for key in new if key in later and key not in own]
        if not own and not others:
            return None
        return Duplicates(tuple((own or others)[:_REPORTED]), newer=not own)


def _comparable(column: pa.Array) -> list[Any]:
    """Values that are equal where the key is: NaN equals itself, and times are text with all their digits."""
    column = plain(column)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.string())
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [value if value == value else "NaN" for value in values]
    return values
