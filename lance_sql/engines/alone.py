"""Sessions for one thread at a time, of the process that opened them."""

from __future__ import annotations

import os
import threading
from typing import Literal

from lance_sql.errors import SqlError


class Alone:
    """A block that one thread executes at a time; in it, it may begin others.

    A second thread waits, or with ``waits=False`` gets an error at once, as from DuckDB 2. So does a process
    that was forked: the threads of the engine do not exist in it.
    """

    def __init__(self, *, waits: bool) -> None:
        self._waits = waits
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """Whether this is another process than the one that opened the session."""
        return os.getpid() != self._process

    def check_process(self) -> None:
        """SqlError in a process that was forked."""
        if self.is_forked:
            raise SqlError(
                "The connection belongs to the process that opened it, and this one was forked from it",
                remedy="Open a connection in each process with lance_sql.connect()",
            )

    def __enter__(self) -> bool:
        self.check_process()
        if not self._lock.acquire(blocking=self._waits):
            raise SqlError(
                "The connection is in use in another thread",
                remedy="Use a connection of its own in each thread: connection.cursor()",
            )
        return True

    def __exit__(self, *exception: object) -> Literal[False]:
        self._lock.release()
        return False
