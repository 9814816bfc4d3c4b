"""Ctrl-C while an engine is at work.

A signal only reaches Python code of the main thread. Engines do not look for it, so a call made by the main
thread is handed to another one, and the main thread waits in a way that a signal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from lance_engine.tasks import Task, start_thread

T = TypeVar("T")

#: Seconds until an engine that goes on is told again.
_AGAIN = 0.05


class Interruptible:
    """Makes calls of one session, which `interrupt` ends.

    An engine that cannot be told when to end keeps running after `patience` seconds: its rows are discarded.
    """

    def __init__(self, interrupt: Callable[[], None], patience: float | None = None) -> None:
        self._interrupt = interrupt
        self._patience = patience
        self._worker: _Worker | None = None

    def __call__(self, call: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
        """What `call` returns; `interrupt` ends this call instead of that of all."""
        if threading.current_thread() is not threading.main_thread():
            return call()
        running = Task(call)
        try:
            if self._worker is None:
                self._worker = _Worker()
            self._worker.calls.put(running)
            return running.result()
        except BaseException:
            self._end(running, interrupt or self._interrupt)
            raise

    def _end(self, running: Task[Any], interrupt: Callable[[], None]) -> None:
        """The main thread was interrupted, the call was not: end it, whatever else comes meanwhile."""
        waited = 0.0
        if running.cancel():
            return
        while not running.wait(0):
            try:
                # An engine forgets what it is told before it has begun to work: it is told until it listens.
                interrupt()
                running.wait(_AGAIN)
                waited += _AGAIN
                if self._patience is not None and waited >= self._patience and self._worker is not None:
                    self._worker.calls.put(None)
                    self._worker = None
                    return
            except KeyboardInterrupt:
                continue  # the first one is on its way

    def close(self) -> None:
        if self._worker is not None:
            self._worker.calls.put(None)
            self._worker.ended.result()
            self._worker = None


class _Worker:
    """Makes calls one after the other, until it gets None.

    The process does not wait for it to end: an engine may be left to itself for longer than anybody waits.
    """

    def __init__(self) -> None:
        self.calls: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self.ended = Task(self._run)
        start_thread(self.ended.run, "lance-sql statement")

    def _run(self) -> None:
        while (call := self.calls.get()) is not None:
            call.run()
            del call  # and with it the rows that it found
