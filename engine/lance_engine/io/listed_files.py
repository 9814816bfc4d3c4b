"""Files of buckets that a listing proves to be unchanged, so they are not read again."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final, NamedTuple

# Manifests of a few datasets.
_MOST_BYTES: Final = 16 << 20
_MOST_FILES: Final = 256


class Tag(NamedTuple):
    """A store's description of a file; the tag changes with the content."""

    entity: str
    size: int
    written: Hashable

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> Tag | None:
        """The tag of an entry of a listing; None if the store has none."""
        entity = entry.get("e_tag")
        return cls(entity, int(entry["size"]), entry["last_modified"]) if entity else None

    def is_of(self, entry: Mapping[str, Any]) -> bool:
        """Whether an answer, which knows the time less exactly, has the content that was listed."""
        return entry.get("e_tag") == self.entity and int(entry["size"]) == self.size


class ListedFiles:
    """The files that were read last; safe to use from several threads."""

    def __init__(self, most_bytes: int = _MOST_BYTES, most_files: int = _MOST_FILES) -> None:
        self._most_bytes = most_bytes
        self._most_files = most_files
        self.clear()
        # Each thread only relies on its own listings: those of others may be older.
        self._listed = threading.local()

    def note(self, file: Hashable, tag: Tag | None) -> None:
        """Note what a listing, which just ended, says about a file."""
        self._listed.last = file, tag

    def listed(self, file: Hashable) -> Tag | None:
        """The tag of a file, once, if the last listing of this thread named it."""
        noted, tag = getattr(self._listed, "last", (None, None))
        if noted != file:
            return None
        self._listed.last = None, None
        return tag

    def find(self, file: Hashable, tag: Tag) -> bytes | None:
        """The content with this tag, if it is here."""
        with self._lock:
            entry = self._cache.get(file)
            if entry is None or entry[0] != tag:
                return None
            self._cache.move_to_end(file)
            return entry[1]

    def keep(self, file: Hashable, tag: Tag, data: bytes) -> None:
        """Keep the content of a file; if there is no room, it replaces other files."""
        with self._lock:
            _, before = self._cache.pop(file, (None, b""))
            self._cache[file] = tag, data
            self._bytes += len(data) - len(before)
            while self._bytes > self._most_bytes or len(self._cache) > self._most_files:
                _, (_, dropped) = self._cache.popitem(last=False)
                self._bytes -= len(dropped)

    def clear(self) -> None:
        """Drop everything; also in a new process, where no other thread holds the lock."""
        self._lock = threading.Lock()
        self._cache: OrderedDict[Hashable, tuple[Tag, bytes]] = OrderedDict()
        self._bytes = 0


#: of all buckets of this process
LISTED: Final = ListedFiles()
os.register_at_fork(after_in_child=LISTED.clear)
