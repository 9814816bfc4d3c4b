"""Memory limit in bytes for read-ahead and caches, and the cache of page metadata.

The limit is divided: a quarter for decoded batches waiting for their consumer, a quarter for page metadata
(chunk indices, dictionaries, zone maps), an eighth for table indices, and the rest for freed batch memory
that is kept for reuse. Programs that read remote files use up to an eighth more, for the data fetched when
opening them. ``LANCE_SQL_MEMORY`` sets the initial limit: a number of bytes with an optional suffix K, M or
G.

A program that holds large results may keep more when it releases them: as much memory as recent batches used
at the same time is kept for the next ones, up to four times the limit and a quarter of the machine's memory.
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
from lance_engine.public import public

_DEFAULT_LIMIT: Final = 256 << 20
_MOST_KEPT: Final = 4  # times the limit
_UNITS: Final = {"K": 10, "M": 20, "G": 30}


class Cached(Protocol):
    """An object whose content can be dropped, and is read again when needed."""

    def evict(self) -> None:
        """Drop the content. References that callers already hold stay valid."""
        ...


@dataclass(frozen=True, slots=True)
class CacheStatistics:
    """`bytes` is an estimate; `hits` and `misses` count accesses that found, or did not find, the content."""

    bytes: int
    limit: int
    entries: int
    hits: int
    misses: int
    evictions: int


class _Reference(weakref.ref[Cached]):
    """A weak reference with its cache key."""

    __slots__ = ("key",)
    key: int


class MetadataCache:
    """Evicts the metadata of the least recently used owners when the total exceeds `limit` bytes.

    Owners are weakly referenced: deleted ones are not counted. Thread-safe.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, tuple[_Reference, int]] = OrderedDict()
        # References to deleted owners. They are only recorded at deletion, which can happen at any time: with
        # the lock held, or while an interrupt arrives that Python code would lose.
        self._gone: deque[_Reference] = deque()
        self._bytes = 0
        self._hits = self._misses = self._evictions = 0

    def hit(self, owner: Cached) -> None:
        """Record an access to `owner` that found the content."""
        with self._lock:
            self._hits += 1
            if id(owner) in self._entries:
                self._entries.move_to_end(id(owner))

    def grew(self, owner: Cached, size: int) -> None:
        """Record that `owner` loaded `size` bytes; the content of others, then its own, may be evicted."""
        key = id(owner)
        with self._lock:
            self._forget()
            self._misses += 1
            if key in self._entries:
                reference, before = self._entries.pop(key)
            else:
                # The entry holds the reference, and with it the callback.
                reference, before = _Reference(owner, self._gone.append), 0
                reference.key = key
            self._entries[key] = reference, before + size
            self._bytes += size
            evicted = self._shrink()
        for dropped in evicted:
            dropped.evict()

    def set_limit(self, limit: int) -> None:
        with self._lock:
            self._forget()
            self._limit = limit
            evicted = self._shrink()
        for owner in evicted:
            owner.evict()

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
        """Drop the entries of deleted owners."""
        while self._gone:
            reference = self._gone.popleft()
            # Another owner at the same address may have replaced it.
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
    """Limit in bytes for read-ahead and caches together."""
    return _limit


@public
def set_memory_limit(limit: int) -> None:
    """Limit read-ahead and caches of all datasets in this process to `limit` bytes."""
    global _limit
    if not isinstance(limit, int) or limit < 0:
        raise InvalidArgumentError(f"memory limit must be a number of bytes >= 0, not {limit!r}")
    _limit = limit
    METADATA.set_limit(limit // 4)
    _keep_output_memory(limit)


def read_ahead_bytes() -> int:
    """Limit in bytes for decoded batches waiting for the consumer of a scan."""
    return _limit // 4


def index_cache_bytes() -> int:
    """Limit in bytes for cached data of table indices."""
    return _limit // 8


def description_cache_bytes() -> int:
    """Limit in bytes for cached data of remote files, for opening them again."""
    return _limit // 8


def cache_statistics() -> CacheStatistics:
    """Statistics of the page metadata cache since the process started."""
    return METADATA.statistics()
