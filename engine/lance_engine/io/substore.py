"""A folder of a store as its own store: where a branch is in its dataset."""

from __future__ import annotations

from collections.abc import Hashable

from lance_engine.io.external import ExternallyCommittedStore
from lance_engine.io.store import Store, checked_path, identity_of
from lance_engine.io.wrapped import WrappedStore


class SubStore(WrappedStore):
    """The files of `base` below `folder`, by paths relative to it."""

    def __init__(self, base: Store, folder: str) -> None:
        super().__init__(base)
        self.folder = checked_path(folder)

    @property
    def uri(self) -> str:
        location, query, parameters = self.base.uri.partition("?")
        return f"{location.rstrip('/')}/{self.folder}{query}{parameters}"

    @property
    def identity(self) -> Hashable:
        """For the same folder of the same files."""
        return identity_of(self.base), self.folder

    def __repr__(self) -> str:
        return f"SubStore({self.base!r}, {self.folder!r})"

    def list(self, prefix: str) -> list[str]:
        start = len(self.folder) + 1
        return [path[start:] for path in self.base.list(self._inner(prefix) if prefix else self.folder)]

    def _inner(self, path: str) -> str:
        return f"{self.folder}/{checked_path(path)}"


def files_uri(store: Store) -> str:
    """Where the files of a dataset are, for code that needs no manifests: clones and branches refer to it."""
    if isinstance(store, SubStore):
        return f"{files_uri(store.base).rstrip('/')}/{store.folder}"
    if isinstance(store, ExternallyCommittedStore):
        return files_uri(store.base)
    return store.uri


def is_externally_committed(store: Store) -> bool:
    """Whether a database decides on the versions of a dataset or branch."""
    return isinstance(store.base if isinstance(store, SubStore) else store, ExternallyCommittedStore)
