"""The data files of the tasks of a job: their names contain a tag, and they are removed if not committed."""

from __future__ import annotations

import contextlib
import uuid

from lance_engine.errors import LanceError
from lance_engine.io import delete_quietly
from lance_engine.table import open_snapshot

from lance_sql.spark.cluster import files_with, remove_tagged
from lance_sql.spark.options import Options


class JobFiles:
    """Created on the driver before any task runs; `read_version` is 0 if there is no dataset yet."""

    def __init__(self, options: Options, read_version: int) -> None:
        self.tag = uuid.uuid4().hex
        self._options = options
        self._read_version = read_version

    def discard(self) -> None:
        """Remove whatever the tasks of this job wrote.

        Spark aborts while stopping tasks may still be finishing a file, so this looks again until no new file
        has appeared for a while. It also aborts if the commit failed: if a version refers to the files after
        all, they are kept.
        """
        if self._is_committed():
            return
        remove_tagged(self._options.store(), self.tag)

    def remove_duplicates(self, committed: set[str]) -> None:
        """Remove the files of tasks that ran twice, or that were lost after writing."""
        store = self._options.store()
        with contextlib.suppress(OSError, LanceError):
            delete_quietly(store, [path for path in files_with(store, self.tag) if path not in committed])

    def _is_committed(self) -> bool:
        latest = self._options.latest()
        if latest is None:
            return False
        newer = range(self._read_version + 1, latest.version + 1)
        return any(
            self.tag in file.path
            for version in newer
            for fragment in open_snapshot(self._options.store(), version).fragments
            for file in fragment.files
        )
