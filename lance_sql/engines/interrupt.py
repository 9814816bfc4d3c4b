"""Ctrl-C while an engine is at work.

A signal only reaches Python code of the main thread. Engines do not look for it, so a call made by the main
thread is handed to another one, and the main thread waits in a way that a signal ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

#: Seconds until an engine that goes on is told again.
_AGAIN = 0.05


class Interruptible:
    """Makes calls of one session, which `interrupt` ends.

    An engine that cannot be told when to end is left to itself after `patience` seconds: its rows go nowhere.
    """

    def __init__(self, interrupt: Callable[[], None], patience: float | None = None) -> None:
        self._interrupt = interrupt
        self._patience = patience
        self._worker: _Worker | None = None

    def __call__(self, call: Callable[[], T], interrupt: Callable[[], None] | None = None) -> T:
        """What `call` returns; `interrupt` ends this call instead of that of all."""
        if threading.current_thread() is not threading.main_thread():
            return call()
        running = _Call(call)
        try:
            if self._worker is None:
                self._worker = _Worker()
            self._worker.calls.put(running)
            result: T = running.result.result()
            return result
        except BaseException:
            self._end(running, interrupt or self._interrupt)
            raise

    def _end(self, running: _Call, interrupt: Callable[[], None]) -> None:
        """The main thread was interrupted, the call was not: end it, whatever else comes meanwhile."""
        waited = 0.0
        running.wanted = False
        while running.begun and not running.result.done():
            try:
                # An engine forgets what it is told before it has begun to work: it is told until it listens.
                interrupt()
                wait([running.result], _AGAIN)
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
            self._worker.join()
            self._worker = None


class _Worker(threading.Thread):
    """Makes calls one after the other, until it gets None.

    The process does not wait for it to end: an engine may be left to itself for longer than anybody waits.
    """

    def __init__(self) -> None:
        super().__init__(name="lance-sql statement", daemon=True)
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        self.start()

    def run(self) -> None:
        while (call := self.calls.get()) is not None:
            call.run()
            del call  # and with it the rows that it found


class _Call:
    """A call that another thread makes, unless it is not wanted any more when that comes to it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self.wanted = True
        self.begun = False
        self.result: Future[Any] = Future()

    def run(self) -> None:
        self.begun = True
        if not self.wanted:
            self.result.cancel()
            return
        try:
            self.result.set_result(self._call())
        except BaseException as error:
            self.result.set_exception(error)
