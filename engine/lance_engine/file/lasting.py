"""Cached data of remote files: their ends, their column metadata, and small files as a whole.

Files never change once written, so cached data stays valid when a file is opened again.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lance_engine import kernels
from lance_engine.cache import description_cache_bytes
from lance_engine.io.store import identity_of

if TYPE_CHECKING:
    from lance_engine.io.store import Store

# Memory of an entry in addition to its bytes.
_ENTRY_BYTES: Final = 1024


class Claim(NamedTuple):
    """Ranges that one thread fetches, while others wait for the event."""

    process: int
    ranges: tuple[tuple[int, int], ...]
    ended: threading.Event

    def covers(self, offset: int, length: int) -> bool:
        """Whether a range is among them; threads of another process do not exist after a fork."""
        if self.process != os.getpid():
            return False
        return any(begin <= offset and offset + length <= begin + size for begin, size in self.ranges)


class LastingRanges:
    """The cached ranges of a file, kept while the file is open, or while there is room."""

    __slots__ = ("_claims", "_lock", "bytes", "key", "source")

    def __init__(self, key: Hashable, size: int) -> None:
        self.key = key
        self.source = kernels.SegmentSource(size)
        self.bytes = _ENTRY_BYTES
        self._lock = threading.Lock()
        self._claims: list[Claim] = []

    def fetch(
        self, ranges: Sequence[tuple[int, int]], fetch: Callable[[Sequence[tuple[int, int]]], None]
    ) -> None:
        """Call `fetch` with those of the ranges that are missing, unless another thread fetches them now."""
        while True:
            with self._lock:
                missing = [span for span in ranges if not self.source.holds(*span)]
                others = [claim for claim in self._claims if any(claim.covers(*span) for span in missing)]
                own = [span for span in missing if not any(claim.covers(*span) for claim in others)]
                claim = Claim(os.getpid(), tuple(own), threading.Event())
                if own:
                    self._claims.append(claim)
            if not missing:
                return
            if own:
                try:
                    fetch(own)
                finally:
                    with self._lock:
                        self._claims.remove(claim)
                    claim.ended.set()
            for other in others:
                other.ended.wait()
            if not others:
                return


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
            lasting = self._entries.get(key)
            if lasting is None:
                lasting = self._entries[key] = LastingRanges(key, size)
                self._bytes += lasting.bytes
                self._shrink()
            else:
                self._entries.move_to_end(key)
            return lasting

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
