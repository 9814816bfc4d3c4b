"""Moves bytes, never interprets them: reads of ranges, atomic writes, listings."""

from lance_engine.io.local import LocalStore
from lance_engine.io.memory import MemoryStore
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Sink, Store, delete_quietly
from lance_engine.io.substore import SubStore, files_uri, is_externally_committed

__all__ = [
    "LocalStore",
    "MemoryStore",
    "Sink",
    "Store",
    "SubStore",
    "delete_quietly",
    "files_uri",
    "is_externally_committed",
    "open_store",
]
