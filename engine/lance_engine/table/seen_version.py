"""Whether a dataset on a local disk still has the newest version that was opened, without reading anything.

Writers add a manifest for each version, which changes the times of the folder that contains them. Nobody
changes a manifest, but the dataset may be replaced by another one.
"""

from __future__ import annotations

import os
import time
from typing import Final, NamedTuple

from lance_engine.io.local import LocalStore
from lance_engine.io.manifest_names import VERSIONS, NamingScheme
from lance_engine.table.snapshot import Snapshot

#: The times of files are only this exact: what changed later than that may change again, unnoticed.
_CLOCK_NS: Final = 5_000_000_000

Identity = tuple[int, int, int, int, int]


class SeenFolder(NamedTuple):
    """The folder with the manifests of a dataset, before its newest version was looked up."""

    root: str
    identity: Identity

    @classmethod
    def at(cls, location: str) -> SeenFolder | None:
        """The folder at a local path as it is; None if it does not exist, or if it has just changed."""
        if "://" in location:
            return None
        root = os.path.abspath(location)
        folder = settled(os.path.join(root, VERSIONS))
        return None if folder is None else cls(root, folder)

    def with_version(self, snapshot: Snapshot) -> SeenVersion | None:
        """The version that was then found; None if others may come without a change of the folder."""
        # Other stores than exactly this one know of versions from elsewhere.
        if type(snapshot.store) is not LocalStore or snapshot.store.uri != self.root:
            return None
        for scheme in (NamingScheme.V2, NamingScheme.V1):
            manifest = os.path.join(self.root, *scheme.path(snapshot.version).split("/"))
            file = settled(manifest)
            if file is not None:
                return SeenVersion(self, manifest, file)
        return None


class SeenVersion(NamedTuple):
    """The newest version of a dataset when it was opened."""

    folder: SeenFolder
    manifest: str
    identity: Identity

    def is_newest(self, location: str) -> bool:
        """Whether a location, which may be a relative path, still has this version as its newest one."""
        root = self.folder.root
        try:
            return (
                os.path.abspath(location) == root
                and identity(os.stat(os.path.join(root, VERSIONS))) == self.folder.identity
                and identity(os.stat(self.manifest)) == self.identity
            )
        except (OSError, ValueError):
            return False


def settled(path: str) -> Identity | None:
    """What changes with a file or folder; None if it is missing, or was changed so recently that the next
    change may go unnoticed.
    """
    now = time.time_ns()
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return identity(status) if max(status.st_mtime_ns, status.st_ctime_ns) + _CLOCK_NS < now else None


def identity(status: os.stat_result) -> Identity:
    """What changes with a file, or with the names in a folder."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
