"""A store over another one: the base of stores that change some of its answers."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence

from lance_engine.io.store import (
    Buffer,
    Sink,
    Store,
    identity_of,
    max_in_flight_of,
    ranges_at_once,
    read_buffer,
)


class WrappedStore:
    """The files of `base`; each subclass overrides what is different in it."""

    def __init__(self, base: Store) -> None:
        self.base = base

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base!r})"

    @property
    def uri(self) -> str:
        return self.base.uri

    @property
    def identity(self) -> Hashable:
        """The files are the same through either store."""
        return identity_of(self.base)

    @property
    def max_in_flight(self) -> int | None:
        """See `lance_engine.io.store.max_in_flight_of`."""
        return max_in_flight_of(self.base)

    @property
    def ranges_at_once(self) -> int:
        """See `lance_engine.io.store.ranges_at_once`."""
        return ranges_at_once(self.base)

    def _inner(self, path: str) -> str:
        """The path of a file in `base`."""
        return path

    def size(self, path: str) -> int:
        return self.base.size(self._inner(path))

    def modified(self, path: str) -> datetime.datetime | None:
        return self.base.modified(self._inner(path))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.base.read(self._inner(path), offset, length)

    def expect_size(self, path: str, size: int) -> None:
        self.base.expect_size(self._inner(path), size)

    def read_buffer(self, path: str, offset: int, length: int) -> Buffer:
        """See `lance_engine.io.store.read_buffer`."""
        return read_buffer(self.base, self._inner(path), offset, length)

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        return self.base.read_tail(self._inner(path), length)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        return self.base.read_ranges(self._inner(path), ranges)

    def list(self, prefix: str) -> list[str]:
        return self.base.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        return self.base.names(self._inner(folder))

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.base.first_names(self._inner(folder))

    def exists(self, path: str) -> bool:
        return self.base.exists(self._inner(path))

    def put(self, path: str, data: bytes) -> None:
        self.base.put(self._inner(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.base.put_if_absent(self._inner(path), data)

    def delete(self, path: str) -> None:
        self.base.delete(self._inner(path))

    def create(self, path: str) -> Sink:
        return self.base.create(self._inner(path))

    def local_path(self, path: str) -> str | None:
        return self.base.local_path(self._inner(path))
