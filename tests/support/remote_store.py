"""A store that is not local: counts what it is asked for, and answers after a while."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from lance_engine.io.memory import MemoryStore

# Seconds until the reads that a test wants to gather have come, also on a busy machine.
_PATIENCE = 2.0


class RemoteStore(MemoryStore):
    """Files in memory whose reading takes `latency` seconds.

    Notes every range read as (path, offset, length) in `ranges`, and how many were read at the same time. How
    many that are depends on how busy the machine is, unless the test asks to `gather` them.
    """

    def __init__(self, name: str = "remote", latency: float = 0.0) -> None:
        super().__init__(name)
        self.latency = latency
        self.ranges: list[tuple[str, int, int | None]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self._counting = threading.Condition()
        self._gathered = 0

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str], latency: float = 0.0) -> RemoteStore:
        """The files of a local dataset."""
        store = cls(Path(folder).name, latency)
        for path in Path(folder).rglob("*"):
            if path.is_file():
                store.put(path.relative_to(folder).as_posix(), path.read_bytes())
        return store

    def gather(self, requests: int) -> None:
        """Let every read wait until so many are in flight, once; one that is alone waits for a while."""
        self._gathered = requests

    def reset_counters(self) -> None:
        super().reset_counters()
        self.ranges.clear()
        self.most_in_flight = 0

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._counting:
            self.ranges.append((path, offset, length))
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            if self.in_flight >= self._gathered:
                self._gathered = 0
                self._counting.notify_all()
            else:
                self._counting.wait_for(lambda: not self._gathered, timeout=_PATIENCE)
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
