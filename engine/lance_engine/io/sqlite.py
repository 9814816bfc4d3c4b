"""Versions recorded in an SQLite database: for shared disks without hard links, and for other plain storage.

All writers must reach the same database file, on a disk with file locks that work.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io.external import ManifestEntry

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS manifests (
    base_uri TEXT NOT NULL,
    version INTEGER NOT NULL,
    path TEXT NOT NULL,
    committer TEXT NOT NULL,
    size INTEGER,
    e_tag TEXT,
    PRIMARY KEY (base_uri, version)
) WITHOUT ROWID
"""
_COLUMNS: Final = "version, path, size, e_tag"
_LOCK_TIMEOUT: Final = 60.0


class SQLiteManifestStore:
    """The table ``manifests`` of the database file at `path`, which is created when it does not exist.

    Each call opens the file again: that costs little compared with a commit, and is safe in threads and
    after a fork.
    """

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    def latest(self, dataset: str) -> ManifestEntry | None:
        query = f"SELECT {_COLUMNS} FROM manifests WHERE base_uri = ? ORDER BY version DESC LIMIT 1"
        return self._one(query, (dataset,))

    def get(self, dataset: str, version: int) -> ManifestEntry | None:
        query = f"SELECT {_COLUMNS} FROM manifests WHERE base_uri = ? AND version = ?"
        return self._one(query, (dataset, version))

    def add(self, dataset: str, entry: ManifestEntry) -> None:
        values = (dataset, entry.version, entry.path, "lance-sql", entry.size, entry.e_tag)
        with self._open() as connection:
            try:
                connection.execute("INSERT INTO manifests VALUES (?, ?, ?, ?, ?, ?)", values)
            except sqlite3.IntegrityError:
                raise FileExistsError(entry.path) from None

    def replace(self, dataset: str, entry: ManifestEntry) -> None:
        update = "UPDATE manifests SET path = ?, size = ?, e_tag = ? WHERE base_uri = ? AND version = ?"
        with self._open() as connection:
            changed = connection.execute(
                update, (entry.path, entry.size, entry.e_tag, dataset, entry.version)
            ).rowcount
        if not changed:
            raise CorruptFileError(
                f"The manifest store '{self.path}' is missing a version", path=dataset, version=entry.version
            )

    def forget(self, dataset: str) -> None:
        with self._open() as connection:
            connection.execute("DELETE FROM manifests WHERE base_uri = ?", (dataset,))

    def _one(self, query: str, values: tuple[Any, ...]) -> ManifestEntry | None:
        with self._open() as connection:
            row = connection.execute(query, values).fetchone()
        return None if row is None else ManifestEntry(*row)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise UnsupportedFeatureError(
                f"Cannot open the manifest store: {error}",
                path=self.path,
                remedy="Use a database file in an existing, writable folder",
            ) from error
        try:
            # A commit must survive the machine: the file is synchronised before a statement returns.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(_SCHEMA)
            yield connection
        except sqlite3.DatabaseError as error:
            # A plain OSError on purpose: as after a lost connection, the version may or may not be recorded.
            raise OSError(f"The manifest store '{self.path}' failed: {error}") from error
        finally:
            connection.close()
