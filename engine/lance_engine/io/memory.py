"""Datasets in memory, counting what is read: for tests and for short-lived tables."""

from __future__ import annotations

import datetime
import io
import threading
from collections.abc import Sequence

from lance_engine.io.store import Sink, checked_path, checked_range


class MemoryStore:
    """Files in a dictionary.

    `requests` counts read calls (a call of `read_ranges` counts each range), `bytes_read` their bytes.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._files: dict[str, bytes] = {}
        self._written: dict[str, datetime.datetime] = {}
        self._lock = threading.Lock()
        self.requests = 0
        self.bytes_read = 0

    @property
    def uri(self) -> str:
        return f"memory://{self._name}"

    def reset_counters(self) -> None:
        """Start counting from zero."""
        self.requests = self.bytes_read = 0

    def size(self, path: str) -> int:
        return len(self._file(path))

    def modified(self, path: str) -> datetime.datetime | None:
        self._file(path)
        return self._written.get(path)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        content = self._file(path)
        start, stop = checked_range(path, len(content), offset, length)
        with self._lock:
            self.requests += 1
            self.bytes_read += stop - start
        return content[start:stop]

    def expect_size(self, path: str, size: int) -> None:
        pass

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        size = self.size(path)
        return self.read(path, max(0, size - length)), size

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.read(path, offset, length) for offset, length in ranges]

    def list(self, prefix: str) -> list[str]:
        start = f"{checked_path(prefix)}/" if prefix else ""
        with self._lock:
            return sorted(path for path in self._files if path.startswith(start))

    def names(self, folder: str) -> Sequence[str]:
        start = len(folder) + 1
        return [name for path in self.list(folder) if "/" not in (name := path[start:])]

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.names(folder), True

    def exists(self, path: str) -> bool:
        return checked_path(path) in self._files

    def put(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[checked_path(path)] = bytes(data)
            self._written[path] = datetime.datetime.now(datetime.UTC)

    def put_if_absent(self, path: str, data: bytes) -> None:
        with self._lock:
            if checked_path(path) in self._files:
                raise FileExistsError(path)
            self._files[path] = bytes(data)
            self._written[path] = datetime.datetime.now(datetime.UTC)

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(checked_path(path), None)
            self._written.pop(path, None)

    def create(self, path: str) -> Sink:
        return _MemorySink(self, checked_path(path))

    def local_path(self, path: str) -> str | None:
        return None

    def _file(self, path: str) -> bytes:
        try:
            return self._files[checked_path(path)]
        except KeyError:
            raise FileNotFoundError(f"{self.uri}/{path}") from None


class _MemorySink(Sink):
    def __init__(self, store: MemoryStore, path: str) -> None:
        self._store = store
        self._path = path
        self._buffer = io.BytesIO()

    def write(self, data: bytes | bytearray | memoryview, /) -> int:
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._buffer.tell()

    def close(self) -> None:
        if not self._buffer.closed:
            self._store.put(self._path, self._buffer.getvalue())
            self._buffer.close()

    def discard(self) -> None:
        self._buffer.close()
