"""The versions of a dataset, and the names of their manifests."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from lance_engine.errors import CorruptFileError, LanceError, VersionNotFoundError
from lance_engine.format.manifest import Manifest, parse_manifest_file
from lance_engine.io.manifest_names import (
    ENDING,
    MAX_VERSION,
    V2_LENGTH,
    VERSIONS,
    NamingScheme,
    parse_manifest_name,
)
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.defaults import with_defaults
from lance_engine.table.durations import in_utc
from lance_engine.table.features import check_readable
from lance_engine.table.not_found import dataset_not_found
from lance_engine.table.row_counts import with_row_counts
from lance_engine.table.snapshot import Snapshot


class VersionList:
    """The versions of the main branch, and their common naming scheme.

    Usually only the latest of thousands of versions is needed: the others are computed on demand.
    """

    def __init__(self, names: Sequence[str], scheme: NamingScheme) -> None:
        self._names = names
        self.scheme = scheme

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """All versions, ascending."""
        return tuple(sorted(map(self._version, self._names)))

    @cached_property
    def latest(self) -> int:
        """The highest version."""
        if self.scheme is NamingScheme.V2:
            return self._version(min(self._names))
        return self.versions[-1]

    def path(self, version: int) -> str:
        """The path of the manifest of a version."""
        return self.scheme.path(version)

    @staticmethod
    def _version(name: str) -> int:
        parsed = parse_manifest_name(name)
        assert parsed is not None
        return parsed[0]


def list_versions(store: Store) -> VersionList | None:
    """All versions of a dataset, or None; CorruptFileError if naming schemes are mixed."""
    return _version_list(store, store.names(VERSIONS))


def _version_list(store: Store, names: Sequence[str]) -> VersionList | None:
    """The versions whose manifests are among these files."""
    names = [name for name in names if _MANIFEST.match(name)]
    lengths = set(map(len, names))
    if V2_LENGTH not in lengths:
        return VersionList(names, NamingScheme.V1) if names else None
    if len(lengths) > 1:
        raise CorruptFileError(
            "The dataset mixes both manifest naming schemes",
            path=f"{store.uri}/{VERSIONS}",
            remedy="A migration was interrupted: rename the manifests to one scheme",
        )
    if max(names) > _LARGEST:
        names = [name for name in names if name <= _LARGEST]
    return VersionList(names, NamingScheme.V2) if names else None


# A detached version begins with a letter, a staging file with a dot or ends with more.
_MANIFEST: Final = re.compile(r"[0-9]+\.manifest\Z")
_LARGEST: Final = f"{MAX_VERSION}{ENDING}"


class StoredVersion(NamedTuple):
    """A manifest file, read: the manifest and the other two sections as bytes, None where absent."""

    manifest: Manifest
    index_section: bytes | None
    transaction: bytes | None


def read_version(store: Store, path: str, version: int) -> StoredVersion:
    """Read the manifest at `path`; FileNotFoundError if it is missing; errors contain path and version."""
    try:
        manifest, index_section, transaction = parse_manifest_file(store.read(path))
        if manifest.version != version:
            raise CorruptFileError(f"The manifest records version {manifest.version}")
        check_readable(manifest)
        manifest = with_defaults(manifest, index_section)
    except LanceError as error:
        raise error.at(path=f"{store.uri}/{path}", version=version) from None
    return StoredVersion(manifest, index_section, transaction)


def find_latest(store: Store) -> tuple[int, NamingScheme] | None:
    """The newest version and the naming scheme, None when there is no dataset.

    Always found by listing, as nothing else proves that a version is the newest: a hint file and the times of
    files may be copied or set, and the version after an old one may have been cleaned up.
    """
    names, complete = store.first_names(VERSIONS)
    versions = _version_list(store, names)
    if not complete and (versions is None or versions.scheme is NamingScheme.V1):
        versions = list_versions(store)
    return None if versions is None else (versions.latest, versions.scheme)


def read_latest(store: Store) -> StoredVersion | None:
    """The newest version, None when there is no dataset."""
    while (latest := find_latest(store)) is not None:
        version, scheme = latest
        try:
            return read_version(store, scheme.path(version), version)
        except FileNotFoundError:
            # Newer versions came since the listing, and a cleanup has removed this one.
            if find_latest(store) == latest:
                raise
    return None


def open_snapshot(
    uri: str | os.PathLike[str] | Store,
    version: int | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> Snapshot:
    """Open one version of a dataset, the latest by default.

    DatasetNotFoundError if the dataset does not exist, VersionNotFoundError (with the existing versions) if
    the version does not, UnsupportedFeatureError if its feature flags are unknown.
    """
    store = open_store(uri, storage_options)
    if version is not None:
        return _snapshot(store, _read_explicit(store, version), storage_options)
    latest = find_snapshot(store, storage_options)
    if latest is None:
        raise dataset_not_found(store)
    return latest


def find_snapshot(store: Store, storage_options: Mapping[str, Any] | None = None) -> Snapshot | None:
    """The newest version, None when there is no dataset."""
    latest = read_latest(store)
    return None if latest is None else _snapshot(store, latest, storage_options)


def _snapshot(store: Store, stored: StoredVersion, storage_options: Mapping[str, Any] | None) -> Snapshot:
    return with_row_counts(
        Snapshot(store, stored.manifest, index_section=stored.index_section, storage_options=storage_options)
    )


def version_as_of(store: Store, moment: datetime.datetime) -> int:
    """The newest version that was committed at or before `moment`; a naive time is local time.

    Versions are read starting with the newest until one is old enough. VersionNotFoundError if none is.
    """
    versions = list_versions(store)
    if versions is None:
        raise dataset_not_found(store)
    oldest = None
    for version in reversed(versions.versions):
        try:
            oldest = read_version(store, versions.path(version), version).manifest.committed_at
        except FileNotFoundError:
            break  # removed by a cleanup since it was listed, as are all earlier ones
        if oldest <= in_utc(moment):
            return version
    raise VersionNotFoundError(
        f"No version existed at {moment.isoformat()}",
        path=store.uri,
        remedy=f"The oldest available version was committed at {oldest.isoformat()}" if oldest else "",
    )


def _read_explicit(store: Store, version: int) -> StoredVersion:
    # Trying the likely names first avoids a listing, which is slow on object stores.
    if 0 < version <= MAX_VERSION:
        for scheme in (NamingScheme.V2, NamingScheme.V1):
            try:
                return read_version(store, scheme.path(version), version)
            except FileNotFoundError:
                continue
    versions = list_versions(store)
    if versions is None:
        raise dataset_not_found(store)
    raise VersionNotFoundError(
        f"Version {version} not found",
        path=store.uri,
        remedy=f"Available versions: {_ranges(versions.versions)}",
    )


def check_still_there(store: Store, version: int, undo: Callable[[], object]) -> None:
    """Call `undo` and raise VersionNotFoundError if a cleanup has removed a version that was just named.

    A cleanup lists the named versions again after it has removed manifests: it, or this check, notices.
    """
    if any(store.exists(scheme.path(version)) for scheme in (NamingScheme.V2, NamingScheme.V1)):
        return
    undo()
    raise VersionNotFoundError(
        f"A cleanup has just removed version {version}", path=store.uri, remedy="Choose another version"
    )


def _ranges(versions: tuple[int, ...]) -> str:
    """Ascending numbers with runs shortened: 1-3, 7."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and version == runs[-1][1] + 1:
            runs[-1][1] = version
        else:
            runs.append([version, version])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(texts if len(texts) <= 20 else ["...", *texts[-20:]])
