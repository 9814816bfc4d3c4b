"""Repeats an operation on the latest version if another writer committed first."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

from lance_engine.errors import CommitConflictError
from lance_engine.events import emit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot

MAX_ATTEMPTS: Final = 10
_FIRST_PAUSE: Final = 0.05


def redo_on_conflict(snapshot: Snapshot, operation: Callable[[Snapshot], Snapshot]) -> Snapshot:
    """The result of `operation` for `snapshot`, or if there was a conflict, for the latest version.

    CommitConflictError if other writers were faster every time.
    """
    for attempt in range(MAX_ATTEMPTS - 1):
        try:
            return operation(snapshot)
        except CommitConflictError as error:
            emit("conflict", path=snapshot.uri, version=snapshot.version, reason=error.message)
            time.sleep(random.uniform(0, _FIRST_PAUSE * 2**attempt))
            snapshot = latest(snapshot)
    return operation(snapshot)


def latest(snapshot: Snapshot) -> Snapshot:
    """The latest version of the same dataset."""
    return open_snapshot(snapshot.store, storage_options=snapshot.storage_options)
