"""Memory: one limit in bytes for what is read ahead and kept, and the cache of page metadata below it.

The limit is divided: a quarter for decoded batches that wait for their consumer, a quarter for the metadata
of pages (chunk indices, dictionaries, zone maps), an eighth for what was read of table indices, and the rest
for memory of batches that were freed and waits to be used again. Programs that read remote files keep an
eighth as much on top: what was fetched to open them. ``LANCE_SQL_MEMORY`` sets the initial limit: a number
of bytes that may end in K, M or G.

A program that holds large results may find more waiting when it lets go of them: what batches took at the
same time of late is kept for the next ones, up to four times the limit and a quarter of the machine's memory.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Final, Protocol

from lance_engine import kernels
from lance_engine.errors import InvalidArgumentError
from lance_engine.machine import physical_memory

_DEFAULT_LIMIT: Final = 256 << 20
_MOST_KEPT: Final = 4  # times the limit
_UNITS: Final = {"K": 10, "M": 20, "G": 30}


class Cached(Protocol):
    """Something whose content can be dropped and is read again when needed."""

    def evict(self) -> None:
        """Drop the content. Callers can go on using what they hold."""
        ...


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """`bytes` is an estimate; `hits` and `misses` count uses that found, or did not find, the content."""

    bytes: int
    limit: int
    entries: int
    hits: int
    misses: int
    evictions: int


class _Reference(weakref.ref[Cached]):
    """A reference that knows under which key it is kept."""

    __slots__ = ("key",)
    key: int


class MetadataCache:
    """The least recently used owners of page metadata lose it when the total exceeds `limit` bytes.

    Owners are held weakly: what nothing else uses no longer counts. Safe to use from several threads.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, tuple[_Reference, int]] = OrderedDict()
        # References to deleted owners. They are only noted when that happens, which may be in the
        # middle of anything: with the lock held, or while an interrupt arrives that Python code would lose.
        self._gone: deque[_Reference] = deque()
        self._bytes = 0
        self._hits = self._misses = self._evictions = 0

    def hit(self, owner: Cached) -> None:
        """`owner` was used and had what was wanted."""
        with self._lock:
            self._hits += 1
            if id(owner) in self._entries:
                self._entries.move_to_end(id(owner))

    def grew(self, owner: Cached, size: int) -> None:
        """`owner` had to load `size` bytes more; others, then it itself, may be evicted."""
        key = id(owner)
        with self._lock:
            self._forget()
            self._misses += 1
            if key in self._entries:
                reference, before = self._entries.pop(key)
            else:
                # The reference goes with the entry, and with it the callback.
                reference, before = _Reference(owner, self._gone.append), 0
                reference.key = key
            self._entries[key] = reference, before + size
            self._bytes += size
            evicted = self._shrink()
        for found in evicted:
            found.evict()

    def set_limit(self, limit: int) -> None:
        with self._lock:
            self._forget()
            self._limit = limit
            evicted = self._shrink()
        for found in evicted:
            found.evict()

    def statistics(self) -> CacheStatistics:
        with self._lock:
            self._forget()
            return CacheStatistics(
                self._bytes, self._limit, len(self._entries), self._hits, self._misses, self._evictions
            )

    def _shrink(self) -> list[Cached]:
        evicted = []
        while self._bytes > self._limit and self._entries:
            _, (reference, size) = self._entries.popitem(last=False)
            self._bytes -= size
            self._evictions += 1
            owner = reference()
            if owner is not None:
                evicted.append(owner)
        return evicted

    def _forget(self) -> None:
        """Drop the entries of owners that are gone."""
        while self._gone:
            reference = self._gone.popleft()
            # Its place may have been taken by another owner at the same address.
            if self._entries.get(reference.key, (None, 0))[0] is reference:
                self._bytes -= self._entries.pop(reference.key)[1]


def _configured_limit() -> int:
    text = os.environ.get("LANCE_SQL_MEMORY", "").strip().upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "")
    return int(number) << _UNITS.get(unit, 0) if number.isdigit() else _DEFAULT_LIMIT


def _keep_output_memory(limit: int) -> None:
    kernels.set_cache_limit(limit * 3 // 8, min(_MOST_KEPT * limit, physical_memory() // 4))


_limit = _configured_limit()
METADATA: Final = MetadataCache(_limit // 4)
_keep_output_memory(_limit)


def memory_limit() -> int:
    """Bytes that reading ahead and caches may take together."""
    return _limit


def set_memory_limit(limit: int) -> None:
    """Bound what is read ahead and kept, of all datasets of this process, to `limit` bytes."""
    global _limit
    if not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(f"memory limit must be a number of bytes >= 0, not {limit!r}")
    _limit = limit
    METADATA.set_limit(limit // 4)
    _keep_output_memory(limit)


def read_ahead_bytes() -> int:
    """Bytes of decoded batches that may wait for the consumer of a scan."""
    return _limit // 4


def index_cache_bytes() -> int:
    """Bytes of what was read of table indices that may be kept."""
    return _limit // 8


def description_cache_bytes() -> int:
    """Bytes that may be kept of remote files to open them again."""
    return _limit // 8


def cache_statistics() -> CacheStatistics:
    """What the cache of page metadata holds and how it was used since the process began."""
    return METADATA.statistics()
