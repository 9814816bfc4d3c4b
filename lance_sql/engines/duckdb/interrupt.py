"""Ctrl-C while an engine is at work.

A signal only reaches Python code of the main thread. DuckDB does not look for it, so a call made by the main
thread is handed to another one, and the main thread waits in a way that a signal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")

#: Seconds until an engine that goes on is told again.
_AGAIN = 0.05


class Interruptible:
    """Makes calls of one session; `interrupt` ends the call that is running."""

    def __init__(self, interrupt: Callable[[], None]) -> None:
        self._interrupt = interrupt
        self._threads: ThreadPoolExecutor | None = None

    def __call__(self, call: Callable[[], T]) -> T:
        if threading.current_thread() is not threading.main_thread():
            return call()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="lance-sql statement")
        running = self._threads.submit(call)
        try:
            return running.result()
        except BaseException:
            # The main thread was interrupted, the call was not. An engine forgets what it is told before it
            # has begun to work: it is told again until it listens.
            while not running.done():
                self._interrupt()
                wait([running], _AGAIN)
            raise

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
