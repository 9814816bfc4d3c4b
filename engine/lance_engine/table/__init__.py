"""Versions of a dataset: snapshots, commits and their conflicts, row ids, deletions."""

from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot

__all__ = ["CreateOptions", "Snapshot", "commit", "open_snapshot"]
