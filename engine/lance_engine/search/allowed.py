"""The rows that an index search may return: covered, not deleted, and passing the filter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.index.ranges import EMPTY, ranges_of
from lance_engine.scan.scanner import Scanner
from lance_engine.scan.splits import ScanSplit
from lance_engine.weak_identity import WeakIdentityDict

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.format.fragment import Fragment
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.table.snapshot import Snapshot

I64Array = npt.NDArray[np.int64]
U64Array = npt.NDArray[np.uint64]

# Cached sets of the rows of segments, without a filter, by fragments.
_live: WeakIdentityDict[Snapshot, dict[bytes, kernels.RowSet]] = WeakIdentityDict()


class AllowedRows:
    """The rows of a version that pass a filter, if there is one."""

    def __init__(
        self,
        snapshot: Snapshot,
        reader_for: Callable[[int], FragmentReader],
        filter: Node | None,
        covered: Iterable[int],
    ) -> None:
        """Reads the columns of the filter in the fragments `covered`."""
        self._snapshot = snapshot
        self.addresses: U64Array | None = None
        """Those that pass, ascending; None without a filter."""
        if filter is not None:
            splits = [ScanSplit(number, 0, snapshot.fragment(number).physical_rows) for number in covered]
            scanner = Scanner(snapshot, reader_for, columns=[], filter=filter, splits=splits)
            parts = list(scanner.addresses())
            self.addresses = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)

    def within(self, fragments: BitMap) -> kernels.RowSet:
        """The ids that an index has for the rows in some fragments."""
        if self.addresses is None:
            kept = _live.setdefault(self._snapshot, {})
            key = fragments.serialize()
            allowed = kept.get(key)
            if allowed is None:
                parts = [self._all_of(self._snapshot.fragment(number)) for number in fragments]
                allowed = kept[key] = _row_set(np.concatenate([EMPTY, *parts]))
            return allowed
        numbers = self.addresses >> np.uint64(32)
        first = np.searchsorted(numbers, np.array(fragments, dtype=np.uint64), "left")
        last = np.searchsorted(numbers, np.array(fragments, dtype=np.uint64), "right")
        parts = []
        for number, begin, end in zip(fragments, first.tolist(), last.tolist(), strict=True):
            found_here = self.addresses[begin:end]
            if self._snapshot.has_stable_row_ids and len(found_here):
                offsets = found_here & np.uint64(2**32 - 1)
                found_here = np.sort(self._snapshot.row_ids(self._snapshot.fragment(number), offsets))
            parts.append(ranges_of(found_here))
        return _row_set(np.concatenate([EMPTY, *parts]))

    def _all_of(self, fragment: Fragment) -> I64Array:
        deleted = self._snapshot.deleted_rows(fragment)
        rows = fragment.physical_rows
        if self._snapshot.has_stable_row_ids:
            ids = self._snapshot.row_ids(fragment)
            return ranges_of(np.sort(ids if deleted is None else np.delete(ids, deleted)))
        first = fragment.id << 32
        if deleted is None or not len(deleted):
            return np.array([[first, first + rows]], dtype=np.int64) if rows else EMPTY
        begins = np.concatenate([[0], deleted.astype(np.int64) + 1])
        ends = np.concatenate([deleted.astype(np.int64), [rows]])
        ranges = np.stack([begins, ends], axis=1) + first
        return ranges[begins < ends]


def _row_set(ranges: I64Array) -> kernels.RowSet:
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")].astype(np.uint64)
    return kernels.RowSet(np.ascontiguousarray(ranges[:, 0]), np.ascontiguousarray(ranges[:, 1]))
