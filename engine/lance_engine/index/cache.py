"""A cache for data of indices, with a limit in bytes. Index files never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, TypeVar, cast

from lance_engine.cache import index_cache_bytes, memory_limit
from lance_engine.machine import physical_memory

Value = TypeVar("Value")


class IndexCache:
    """Values with their sizes; the least recently used is evicted first. Thread-safe."""

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, tuple[object, int]] = OrderedDict()
        self._bytes = 0

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self._bytes

    def get(self, key: Hashable, make: Callable[[], Value], size: Callable[[Value], int]) -> Value:
        """The value of `key`, created if missing; values larger than half of the limit are not cached."""
        with self._lock:
            entry = self._values.get(key)
            if entry is not None:
                self._values.move_to_end(key)
                return cast(Value, entry[0])
        value = make()
        room = size(value)
        limit = self._limit()
        if room <= limit // 2:
            with self._lock:
                if key not in self._values:
                    self._values[key] = (value, room)
                    self._bytes += room
                while self._bytes > limit:
                    _, (_, freed) = self._values.popitem(last=False)
                    self._bytes -= freed
        return value

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._values.clear()
            self._bytes = 0


#: Shared by all datasets of the process; keys begin with the place and the identifier of a segment.
CACHE: Final = IndexCache(index_cache_bytes)


def _vector_bytes() -> int:
    """An eighth of the machine's memory, unless the memory limit is lower."""
    return max(index_cache_bytes(), min(physical_memory() // 8, 8 * memory_limit()))


#: Partitions of vector indices, which are large and needed completely.
VECTORS: Final = IndexCache(_vector_bytes)
