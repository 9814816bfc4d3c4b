"""Lets engine threads leave Python code before the interpreter exits.

DataFusion scans on its own worker threads and does not wait for them: after a LIMIT, one may still be in our
code when the interpreter finalizes, and a thread that then acquires the GIL aborts the process. So calls are
counted; at exit, new calls end at once, running ones are waited for, and then a moment without calls.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa

_state = threading.Condition()
_running = 0
_visits = 0
_closing = False

#: Seconds to wait at exit for running calls; one takes milliseconds, so more means that storage hangs.
_PATIENCE = 10.0
#: Seconds without a call after which no engine thread is about to call.
_QUIET = 0.02


@contextmanager
def visit() -> Iterator[bool]:
    """Wraps code that an engine's thread may run; yields False when the interpreter is about to exit."""
    global _running, _visits
    with _state:
        _running += 1
        _visits += 1
    try:
        yield not _closing
    finally:
        with _state:
            _running -= 1
            _state.notify_all()


def guarded(batches: Callable[[], Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The batches that `batches` returns; ends early once the interpreter is exiting."""
    iterator: Iterator[pa.RecordBatch] | None = None
    while True:
        with visit() as welcome:
            if not welcome:
                return
            if iterator is None:
                iterator = iter(batches())
            batch = next(iterator, None)
        if batch is None:
            return
        yield batch


@atexit.register
def _wait_for_visitors() -> None:
    global _closing
    with _state:
        _closing = True
        seen = -1
        while seen != _visits:
            seen = _visits
            _state.wait_for(lambda: _running == 0, _PATIENCE)
            if seen:  # no thread has ever called
                _state.wait(_QUIET)
