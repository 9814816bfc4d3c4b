"""Restores an earlier version."""

from __future__ import annotations

from lance_engine.errors import whole_number
from lance_engine.format.operations import Restore
from lance_engine.operations.changes import commit_change
from lance_engine.table.restores import kept_while_restoring
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot


def restore(snapshot: Snapshot, version: int) -> Snapshot:
    """Create a new version with the contents of an earlier one; VersionNotFoundError if it was removed."""
    whole_number("version", version, 1)
    # Opening it reports how it was removed, or why it can't be read.
    open_snapshot(snapshot.store, version, storage_options=snapshot.storage_options)
    with kept_while_restoring(snapshot.store, version):
        # Regardless of later changes, the content of that version becomes the latest one.
        latest = open_snapshot(snapshot.store, storage_options=snapshot.storage_options)
        return commit_change(latest, Restore(version))
