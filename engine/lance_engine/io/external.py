"""Datasets whose versions are recorded in a database, for storage without atomic file creation.

A commit has four steps. (1) The manifest is written under a staging name, ``<final name>-<uuid>``. (2) The
database records it as the version, unless that version exists: this is the commit. (3) The file is copied to
its final name. (4) The database is updated, and the staging file is removed. If a process dies between (2)
and (4), the version is committed but staged: the next reader continues at (3).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io.manifest_names import ENDING, VERSIONS, NamingScheme, parse_manifest_name
from lance_engine.io.store import Store, delete_quietly
from lance_engine.io.wrapped import WrappedStore


class ManifestEntry(NamedTuple):
    """The database record of a version.

    `path` includes that of the dataset. `size` in bytes and `e_tag` are None if they are not recorded.
    """

    version: int
    path: str
    size: int | None = None
    e_tag: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether the manifest has its final name."""
        return self.path.endswith(ENDING)


class ManifestStore(Protocol):
    """A database of versions. `dataset` identifies the dataset or branch of a version."""

    def latest(self, dataset: str) -> ManifestEntry | None:
        """The highest version, including all earlier commits of others."""
        ...

    def get(self, dataset: str, version: int) -> ManifestEntry | None:
        """One version."""
        ...

    def add(self, dataset: str, entry: ManifestEntry) -> None:
        """Record a version, atomically; FileExistsError if this version exists."""
        ...

    def replace(self, dataset: str, entry: ManifestEntry) -> None:
        """Record where the manifest of a version is now; CorruptFileError if the version does not exist."""
        ...

    def forget(self, dataset: str) -> None:
        """Remove all versions."""
        ...


class ExternallyCommittedStore(WrappedStore):
    """`files`, except that manifests become visible through an entry in `manifests`.

    `key` is the name of the dataset in the database, `uri` the URI for `open_store`. Entries of removed
    versions are kept, so that a delayed writer cannot commit one again.
    """

    def __init__(self, files: Store, manifests: ManifestStore, key: str, uri: str) -> None:
        super().__init__(files)
        self._manifests = manifests
        self._key = key
        self._uri = uri

    @property
    def uri(self) -> str:
        return self._uri

    def __repr__(self) -> str:
        return f"ExternallyCommittedStore({self._uri!r})"

    def list(self, prefix: str) -> list[str]:
        self._finish_latest(prefix)
        return self.base.list(prefix)

    def names(self, folder: str) -> Sequence[str]:
        self._finish_latest(folder)
        return self.base.names(folder)

    def first_names(self, folder: str) -> tuple[Sequence[str], bool]:
        self._finish_latest(folder)
        return self.base.first_names(folder)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        entry = self._finished(path)
        data = self.base.read(path, offset, length)
        whole = not offset and length is None
        if entry is not None and entry.size is not None and whole and entry.size != len(data):
            raise CorruptFileError(
                f"The manifest has {len(data)} bytes, but {entry.size} are recorded for it",
                path=f"{self._uri}/{path}",
                version=entry.version,
            )
        return data

    def size(self, path: str) -> int:
        self._finished(path)
        return self.base.size(path)

    def exists(self, path: str) -> bool:
        self._finished(path)
        return self.base.exists(path)

    def put_if_absent(self, path: str, data: bytes) -> None:
        version = _version(path)
        if version is None:
            self._put_other_if_absent(path, data)
            return
        # A writer may have committed without the database.
        if self.exists(path):
            raise FileExistsError(path)
        dataset = self._dataset(path)
        staging = f"{path}-{uuid.uuid4()}"
        self.base.put(staging, data)
        entry = ManifestEntry(version, self._recorded(staging), len(data))
        try:
            self._manifests.add(dataset, entry)
        except FileExistsError:
            taken = self._manifests.get(dataset, version)
            # A request that was repeated after a lost response finds its own entry.
            if taken is None or taken.path != entry.path:
                delete_quietly(self.base, [staging])
                raise
        # The version is committed: if anything fails now, the next reader completes it.
        with contextlib.suppress(Exception):
            self._finish(dataset, entry)

    def delete(self, path: str) -> None:
        version = _version(path)
        if version is not None:
            dataset = self._dataset(path)
            latest = self._manifests.latest(dataset)
            # Cleanup keeps the latest version: deleting it means deleting the whole dataset or branch.
            if latest is not None and latest.version == version:
                self._manifests.forget(dataset)
        self.base.delete(path)

    def _put_other_if_absent(self, path: str, data: bytes) -> None:
        try:
            self.base.put_if_absent(path, data)
        except UnsupportedFeatureError:
            # Names of versions: if two are created at the same moment, no data is harmed.
            if self.base.exists(path):
                raise FileExistsError(path) from None
            self.base.put(path, data)

    def _finish_latest(self, folder: str) -> None:
        """Called before a folder of versions is listed."""
        if folder.rpartition("/")[2] == VERSIONS:
            dataset = self._dataset(folder + "/")
            latest = self._manifests.latest(dataset)
            # Only the latest can be staged: a writer completes it before it commits the next one.
            if latest is not None and not latest.is_final:
                self._finish(dataset, latest)

    def _finished(self, path: str) -> ManifestEntry | None:
        """The entry of a manifest that now has its final name; None if `path` is not a known manifest."""
        version = _version(path)
        if version is None:
            return None
        dataset = self._dataset(path)
        entry = self._manifests.get(dataset, version)
        if entry is not None and not entry.is_final:
            self._finish(dataset, entry)
        return entry

    def _finish(self, dataset: str, entry: ManifestEntry) -> None:
        """Give a committed manifest its final name, unless another process has already done so."""
        name = self._name(entry)
        # "18446744073709551614.manifest-<uuid>": the scheme of the final name is kept.
        parsed = parse_manifest_name(name.partition(ENDING)[0] + ENDING)
        scheme = NamingScheme.V2 if parsed is None else parsed[1]
        folder = dataset[len(self._key) :].strip("/")
        folder = f"{folder}/" if folder else ""
        staging = f"{folder}{VERSIONS}/{name}"
        final = f"{folder}{scheme.path(entry.version)}"
        try:
            data = self.base.read(staging)
        except FileNotFoundError:
            current = self._manifests.get(dataset, entry.version)
            if current is not None and current.is_final:
                return
            raise CorruptFileError(
                "The manifest of a committed version is missing",
                path=f"{self._uri}/{staging}",
                version=entry.version,
            ) from None
        self.base.put(final, data)
        self._manifests.replace(
            dataset, ManifestEntry(entry.version, self._recorded(final), len(data), entry.e_tag)
        )
        delete_quietly(self.base, [staging])

    def _name(self, entry: ManifestEntry) -> str:
        folder, _, name = entry.path.rpartition("/")
        if not folder.endswith(VERSIONS) or not name:
            raise CorruptFileError(
                f"The manifest store records '{entry.path}' as a manifest",
                path=self._uri,
                version=entry.version,
            )
        return name

    def _dataset(self, path: str) -> str:
        """The name in the database of the dataset or branch to which the path of a manifest belongs."""
        folder = path.rpartition(f"{VERSIONS}/")[0].rstrip("/")
        return f"{self._key}/{folder}" if folder else self._key

    def _recorded(self, path: str) -> str:
        return f"{self._key}/{path}"


def _version(path: str) -> int | None:
    """The version whose final manifest name is this path; None if it is not a manifest of the history."""
    folder, _, name = path.rpartition("/")
    parsed = parse_manifest_name(name) if folder.rpartition("/")[2] == VERSIONS else None
    return None if parsed is None else parsed[0]
