"""A store that caches immutable files on disk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lance_engine.io.disk_cache import DiskCache, disk_cache
from lance_engine.io.store import Buffer, Sink, Store, checked_range, read_buffer
from lance_engine.io.wrapped import WrappedStore
from lance_engine.metrics import count_cached

# The folders of a dataset or branch, and whether their files are immutable: names of manifests and tags can
# be reused when a dataset is rewritten.
_FOLDERS: Final = {
    "data": True,
    "_deletions": True,
    "_indices": True,
    "_transactions": False,
    "_versions": False,
    "_refs": False,
}


def cached(store: Store, location: str) -> Store:
    """`store` with the disk cache, if there is one; `location` distinguishes it from other stores."""
    cache = disk_cache()
    return store if cache is None else CachedStore(store, location, cache)


class CachedStore(WrappedStore):
    """Reads cached data from `cache`, and adds other data to it. It is pickled without the cache."""

    def __init__(self, store: Store, location: str, cache: DiskCache) -> None:
        super().__init__(store)
        self._location = location
        self._cache = cache
        self._sizes: dict[str, int] = {}

    def __reduce__(self) -> tuple[object, ...]:
        return cached, (self.base, self._location)

    def expect_size(self, path: str, size: int) -> None:
        self._sizes[path] = size

    def size(self, path: str) -> int:
        size = self._sizes[path] = self.base.size(path)
        return size

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if not _never_changes(path):
            return self.base.read(path, offset, length)
        size = self._sizes.get(path)
        if length is None:
            return self._read_rest(path, offset, size)
        if size is None:
            return self.base.read(path, offset, length)
        held = self._held(path, size, offset, length)
        if held is not None:
            return bytes(held)
        data = self.base.read(path, offset, length)
        self._cache.add(self._file(path, size), offset, data)
        return data

    def read_buffer(self, path: str, offset: int, length: int) -> Buffer:
        """See `lance_engine.io.store.read_buffer`."""
        size = self._sizes.get(path)
        if size is None or not _never_changes(path):
            return read_buffer(self.base, path, offset, length)
        held = self._held(path, size, offset, length)
        if held is not None:
            return held
        data = read_buffer(self.base, path, offset, length)
        self._cache.add(self._file(path, size), offset, data)
        return data

    def _held(self, path: str, size: int, offset: int, length: int) -> memoryview | None:
        """A range of a file of this size, if the cache has it."""
        checked_range(path, size, offset, length)
        data = self._cache.read(self._file(path, size), offset, length)
        if data is not None:
            count_cached(1, length)
        return data

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        size = self._sizes.get(path)
        if size is not None and _never_changes(path):
            return self.read(path, max(0, size - length), min(size, length)), size
        data, size = self.base.read_tail(path, length)
        if _never_changes(path):
            self._sizes[path] = size
            self._cache.add(self._file(path, size), size - len(data), data)
        return data, size

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        size = self._sizes.get(path)
        if size is None or not _never_changes(path):
            return self.base.read_ranges(path, ranges)
        file = self._file(path, size)
        by_span: dict[tuple[int, int], Buffer] = {}
        for offset, length in ranges:
            held = self._cache.read(file, offset, length)
            if held is not None:
                count_cached(1, length)
                by_span[offset, length] = held
        missing = [span for span in dict.fromkeys(ranges) if span not in by_span]
        if missing:
            for span, data in zip(missing, self.base.read_ranges(path, missing), strict=True):
                self._cache.add(file, span[0], data)
                by_span[span] = data
        return [by_span[span] for span in ranges]

    def _read_rest(self, path: str, offset: int, size: int | None) -> bytes:
        # A whole file includes its size: the unique name is sufficient to find it again.
        if size is not None:
            return self.read(path, offset, size - offset)
        if offset:
            return self.base.read(path, offset)
        file = self._file(path, None)
        stored_size = self._cache.read(file, 0, _SIZE_BYTES)
        if stored_size is not None:
            length = int.from_bytes(stored_size, "little")
            held = self._cache.read(file, _SIZE_BYTES, length)
            if held is not None:
                count_cached(1, length)
                return bytes(held)
        data = self.base.read(path)
        self._cache.add(file, 0, len(data).to_bytes(_SIZE_BYTES, "little") + data)
        return data

    def _file(self, path: str, size: int | None) -> str:
        return f"{self._location}\0{path}\0{size}"

    def put(self, path: str, data: bytes) -> None:
        self._sizes.pop(path, None)
        self.base.put(path, data)

    def delete(self, path: str) -> None:
        self._sizes.pop(path, None)
        self.base.delete(path)

    def create(self, path: str) -> Sink:
        self._sizes.pop(path, None)
        return self.base.create(path)


_SIZE_BYTES: Final = 8


def _never_changes(path: str) -> bool:
    """Whether the name of the file is never reused; for branches, the folder counts instead."""
    folders = path.split("/")[:-1]
    return next((_FOLDERS[name] for name in reversed(folders) if name in _FOLDERS), False)
