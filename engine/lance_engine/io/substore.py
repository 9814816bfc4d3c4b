"""A folder of a store as its own store: where a branch is in its dataset."""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence

from lance_engine.io.external import ExternallyCommittedStore
from lance_engine.io.store import (
    Buffer,
    Sink,
    Store,
    checked_path,
    identity_of,
    max_in_flight_of,
    ranges_at_once,
    read_buffer,
)


class SubStore:
    """The files of `base` below `folder`, by paths relative to it."""

    def __init__(self, base: Store, folder: str) -> None:
        self.base = base
        self.folder = checked_path(folder)

    @property
    def uri(self) -> str:
        location, query, parameters = self.base.uri.partition("?")
        return f"{location.rstrip('/')}/{self.folder}{query}{parameters}"

    @property
    def identity(self) -> Hashable:
        """For the same folder of the same files."""
        return identity_of(self.base), self.folder

    @property
    def max_in_flight(self) -> int | None:
        """As of the files."""
        return max_in_flight_of(self.base)

    @property
    def ranges_at_once(self) -> int:
        """As of the files."""
        return ranges_at_once(self.base)

    def __repr__(self) -> str:
        return f"SubStore({self.base!r}, {self.folder!r})"

    def size(self, path: str) -> int:
        return self.base.size(self._full(path))

    def modified(self, path: str) -> datetime.datetime | None:
        return self.base.modified(self._full(path))

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        return self.base.read(self._full(path), offset, length)

    def expect_size(self, path: str, size: int) -> None:
        self.base.expect_size(self._full(path), size)

    def read_buffer(self, path: str, offset: int, length: int) -> Buffer:
        """See `lance_engine.io.store.read_buffer`."""
        return read_buffer(self.base, self._full(path), offset, length)

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        return self.base.read_tail(self._full(path), length)

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        return self.base.read_ranges(self._full(path), ranges)

    def list(self, prefix: str) -> list[str]:
        start = len(self.folder) + 1
        return [path[start:] for path in self.base.list(self._full(prefix) if prefix else self.folder)]

    def names(self, folder: str) -> Sequence[str]:
        return self.base.names(self._full(folder))

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.base.first_names(self._full(folder))

    def exists(self, path: str) -> bool:
        return self.base.exists(self._full(path))

    def put(self, path: str, data: bytes) -> None:
        self.base.put(self._full(path), data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.base.put_if_absent(self._full(path), data)

    def delete(self, path: str) -> None:
        self.base.delete(self._full(path))

    def create(self, path: str) -> Sink:
        return self.base.create(self._full(path))

    def local_path(self, path: str) -> str | None:
        return self.base.local_path(self._full(path))

    def _full(self, path: str) -> str:
        return f"{self.folder}/{checked_path(path)}"


def files_uri(store: Store) -> str:
    """Where the files of a dataset are, for code that needs no manifests: clones and branches refer to it."""
    if isinstance(store, SubStore):
        return f"{files_uri(store.base).rstrip('/')}/{store.folder}"
    if isinstance(store, ExternallyCommittedStore):
        return files_uri(store.files)
    return store.uri


def is_externally_committed(store: Store) -> bool:
    """Whether a database decides on the versions of a dataset or branch."""
    return isinstance(store.base if isinstance(store, SubStore) else store, ExternallyCommittedStore)
