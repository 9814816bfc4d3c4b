"""Cached data of remote files: their ends, their column metadata, and small files as a whole.

Files never change once written, so cached data stays valid when a file is opened again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Final

from lance_engine import kernels
from lance_engine.cache import description_cache_bytes
from lance_engine.io.store import identity_of

if TYPE_CHECKING:
    from lance_engine.io.store import Store

# Memory of an entry in addition to its bytes.
_ENTRY_BYTES: Final = 1024


class LastingRanges:
    """The cached ranges of a file, kept while the file is open, or while there is room."""

    __slots__ = ("bytes", "key", "source")

    def __init__(self, key: Hashable, size: int) -> None:
        self.key = key
        self.source = kernels.SegmentSource(size)
        self.bytes = _ENTRY_BYTES


class LastingCache:
    """The least recently opened files are evicted when the total exceeds its share of the memory limit.

    Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, LastingRanges] = OrderedDict()
        self._bytes = 0

    def of_file(self, store: Store, path: str, size: int) -> LastingRanges:
        """The cached data of a file of a store."""
        key = (identity_of(store), path, size)
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                found = self._entries[key] = LastingRanges(key, size)
                self._bytes += found.bytes
                self._shrink()
            else:
                self._entries.move_to_end(key)
            return found

    def grew(self, ranges: LastingRanges, length: int) -> None:
        """Record that `length` bytes of a file were added."""
        with self._lock:
            ranges.bytes += length
            if self._entries.get(ranges.key) is ranges:
                self._bytes += length
                self._shrink()

    def clear(self) -> None:
        """Drop everything; open files keep their data."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _shrink(self) -> None:
        most = description_cache_bytes()
        while self._bytes > most and self._entries:
            _, ranges = self._entries.popitem(last=False)
            self._bytes -= ranges.bytes


#: of all datasets of this process
LASTING: Final = LastingCache()
