"""Versions of a dataset: snapshots, commits and their conflicts, row ids, deletions."""

from lance_engine.table.build import CreateOptions
from lance_engine.table.commit import commit
from lance_engine.table.rebase import TakenRows
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot

__all__ = ["CreateOptions", "Snapshot", "TakenRows", "commit", "open_snapshot"]
