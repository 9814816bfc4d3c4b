"""Ctrl-C while an engine runs.

A signal only reaches Python code of the main thread. Engines do not check for it, so the main thread runs
their calls in another thread, and waits in a way that a signal interrupts.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from lance_engine.base import Task, start_thread

T = TypeVar("T")

#: Seconds until an engine that did not stop is interrupted again.
_AGAIN = 0.05


class Interruptible:
    """Runs calls of one session, which `interrupt` can stop.

    An engine that cannot be interrupted keeps running after `patience` seconds: its rows are discarded.
    """

    def __init__(self, interrupt: Callable[[], None], patience: float | None = None) -> None:
        self._interrupt = interrupt
        self._patience = patience
        self._worker: _Worker | None = None

    def __call__(self, call: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
        """The result of `call`; `interrupt` stops this call instead of all calls of the session."""
        if threading.current_thread() is not threading.main_thread():
            return call()
        running = Task(call)
        try:
            if self._worker is None:
                self._worker = _Worker(self)
            self._worker.calls.put(running)
            return running.result()
        except BaseException:
            self._end(running, interrupt or self._interrupt)
            raise

    def _end(self, running: Task[Any], interrupt: Callable[[], None]) -> None:
        """The main thread was interrupted, but the call was not: stop it, whatever else happens meanwhile."""
        waited = 0.0
        if running.cancel():
            return
        while not running.wait(0):
            try:
                # Engines ignore interrupts before they have started to work, so repeat until it stops.
                interrupt()
                running.wait(_AGAIN)
                waited += _AGAIN
                if self._patience is not None and waited >= self._patience and self._worker is not None:
                    self._worker.calls.put(None)
                    self._worker = None
                    return
            except KeyboardInterrupt:
                continue  # the first one is already sent

    def close(self) -> None:
        if self._worker is not None:
            self._worker.calls.put(None)
            self._worker.ended.result()
            self._worker = None


class _Worker:
    """Runs calls one after the other, until it gets something else, or its owner is deleted.

    The process does not wait for this thread: an abandoned call may take long.
    """

    def __init__(self, owner: Interruptible) -> None:
        self.calls: SimpleQueue[Task[Any] | object] = SimpleQueue()
        # Python code that runs when an object is deleted may lose a Ctrl-C: `put` is written in C.
        self._owner = weakref.ref(owner, self.calls.put)
        self.ended = Task(self._run)
        start_thread(self.ended.run, "lance-sql statement")

    def _run(self) -> None:
        while isinstance(call := self.calls.get(), Task):
            call.run()
            del call  # and its rows
