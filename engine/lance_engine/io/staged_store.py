"""A store over another one in which versions are private: their manifests are kept in memory."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from lance_engine.io.manifest_names import VERSIONS
from lance_engine.io.store import Buffer, Sink, Store, checked_range, delete_quietly
from lance_engine.io.wrapped import WrappedStore

#: Folders whose files only the committing writer should see.
_PRIVATE = (f"{VERSIONS}/", "_transactions/")


class StagedStore(WrappedStore):
    """The files of `base` as they were at one version, whose manifest is `manifest`, and later changes.

    New manifests and transactions stay in memory. All other files are written to `base`, where nothing refers
    to them yet; `written` has their paths. A dataset that does not exist yet has no `manifest`, and the `uri`
    where it will be.
    """

    def __init__(self, base: Store, manifest: str = "", uri: str = "") -> None:
        super().__init__(base)
        self._uri = uri or base.uri
        self.written: set[str] = set()
        self._manifest = manifest
        self._private: dict[str, bytes] = {}

    @property
    def uri(self) -> str:
        return self._uri

    @uri.setter
    def uri(self, uri: str) -> None:
        self._uri = uri

    def discard(self, kept: frozenset[str] = frozenset()) -> None:
        """Remove what was written, except the paths in `kept`."""
        delete_quietly(self.base, sorted(self.written - kept))
        self.written &= kept
        self._private.clear()

    def size(self, path: str) -> int:
        data = self._own(path)
        return self.base.size(path) if data is None else len(data)

    def modified(self, path: str) -> datetime.datetime | None:
        return self.base.modified(path) if self._own(path) is None else datetime.datetime.now(datetime.UTC)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self._own(path)
        if data is None:
            return self.base.read(path, offset, length)
        start, stop = checked_range(path, len(data), offset, length)
        return data[start:stop]

    def read_buffer(self, path: str, offset: int, length: int) -> Buffer:
        """See `lance_engine.io.store.read_buffer`."""
        return (
            super().read_buffer(path, offset, length)
            if self._own(path) is None
            else self.read(path, offset, length)
        )

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        data = self._own(path)
        return self.base.read_tail(path, length) if data is None else (data[-length:], len(data))

    def read_ranges(self, path: str, ranges: Sequence[tuple[int, int]]) -> Sequence[Buffer]:
        if self._own(path) is None:
            return self.base.read_ranges(path, ranges)
        return [self.read(path, offset, length) for offset, length in ranges]

    def list(self, prefix: str) -> list[str]:
        below = f"{prefix}/" if prefix else ""
        known = self.base.list(prefix)
        shared = [path for path in known if path == self._manifest or not path.startswith(_PRIVATE)]
        return sorted([*shared, *(path for path in self._private if path.startswith(below))])

    def names(self, folder: str) -> Sequence[str]:
        below = f"{folder}/"
        if not below.startswith(_PRIVATE):
            return self.base.names(folder)
        return [
            path.removeprefix(below) for path in (self._manifest, *self._private) if path.startswith(below)
        ]

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        return self.names(folder), True

    def exists(self, path: str) -> bool:
        if path.startswith(_PRIVATE):
            return path == self._manifest or path in self._private
        return self.base.exists(path)

    def put(self, path: str, data: bytes) -> None:
        if path.startswith(_PRIVATE):
            self._private[path] = bytes(data)
            return
        self.written.add(path)
        self.base.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.exists(path):
            raise FileExistsError(path)
        self.put(path, data)

    def delete(self, path: str) -> None:
        if path.startswith(_PRIVATE):
            self._private.pop(path, None)
            return
        self.base.delete(path)
        self.written.discard(path)

    def create(self, path: str) -> Sink:
        self.written.add(path)
        return self.base.create(path)

    def local_path(self, path: str) -> str | None:
        return None if path.startswith(_PRIVATE) else self.base.local_path(path)

    def _own(self, path: str) -> bytes | None:
        """A private file; FileNotFoundError for one that only `base` has."""
        if not path.startswith(_PRIVATE) or path == self._manifest:
            return None
        try:
            return self._private[path]
        except KeyError:
            raise FileNotFoundError(path) from None
