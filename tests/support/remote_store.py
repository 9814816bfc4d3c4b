"""A store that is not local: counts what it is asked for, and answers after a while."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from lance_engine.io.memory import MemoryStore


class RemoteStore(MemoryStore):
    """Files in memory whose reading takes `latency` seconds.

    Notes every range read as (path, offset, length) in `ranges`, and how many were read at the same time.
    """

    def __init__(self, name: str = "remote", latency: float = 0.0) -> None:
        super().__init__(name)
        self.latency = latency
        self.ranges: list[tuple[str, int, int | None]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._counting = threading.Lock()

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str], latency: float = 0.0) -> RemoteStore:
        """The files of a local dataset."""
        store = cls(Path(folder).name, latency)
        for path in Path(folder).rglob("*"):
            if path.is_file():
                store.put(path.relative_to(folder).as_posix(), path.read_bytes())
        return store

    def reset_counters(self) -> None:
        super().reset_counters()
        self.ranges.clear()
        self.most_in_flight = 0

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._counting:
            self.ranges.append((path, offset, length))
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self.latency:
                time.sleep(self.latency)
            return super().read(path, offset, length)
        finally:
            with self._counting:
                self.in_flight -= 1

    @property
    def data_requests(self) -> int:
        """How many of the ranges were of data files."""
        return sum(path.startswith("data/") for path, _, _ in self.ranges)
