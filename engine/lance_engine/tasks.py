"""Running work on other threads; Ctrl-C interrupts the main thread while it waits.

`threading` and `concurrent.futures` keep their state in Python code, which a signal may interrupt halfway: a
lock stays locked, or a wait ends with "release unlocked lock". Here each step of a thread that submits work
or waits for it is one call of a lock or queue that is implemented in C.
"""

from __future__ import annotations

import _thread
import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

T = TypeVar("T")
S = TypeVar("S")

#: Seconds for which the process waits at exit for work in progress.
_PATIENCE: Final = 10.0


class Task(Generic[T]):
    """A call that is made once, by the first thread that calls `run`."""

    __slots__ = ("_call", "_ended", "_error", "_value")

    def __init__(self, call: Callable[[], T]) -> None:
        # Taken out by the thread that runs it, or by the thread that cancels: only one of them finds it.
        self._call = deque([call])
        self._error: BaseException | None = None
        self._value: T
        self._ended = _thread.allocate_lock()
        self._ended.acquire()

    def run(self) -> None:
        """Make the call, unless it was cancelled."""
        try:
            call = self._call.pop()
        except IndexError:
            return
        try:
            self._value = call()
        except BaseException as error:
            self._error = error
        finally:
            del call  # and the objects it refers to
            self._ended.release()

    def cancel(self) -> bool:
        """Cancel the call; False if it has started."""
        try:
            self._call.pop()
        except IndexError:
            return False
        self._error = CancelledError()
        self._ended.release()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait up to this many seconds; returns whether it ended."""
        if not self._ended.acquire(timeout=seconds):
            return False
        self._ended.release()
        return True

    def result(self) -> T:
        """The result of the call, or its exception."""
        with self._ended:
            pass
        if self._error is None:
            return self._value
        try:
            raise self._error
        finally:
            del self  # the error refers to this frame


def start_thread(run: Callable[[], object], name: str) -> None:
    """Start a thread that does not keep the process alive.

    `Thread.start` waits in Python code until the thread runs: it is called in a thread that gets no signals.
    """
    _thread.start_new_thread(_start, (run, name))


def _start(run: Callable[[], object], name: str) -> None:
    thread = threading.Thread(target=run, name=name, daemon=True)
    # A set of all thread objects, for Python's own tests, runs Python code wherever one is deleted: a Ctrl-C
    # that the main thread gets just then would be lost.
    known = getattr(threading, "_dangling", None)
    if known is not None:
        known.discard(thread)
    try:
        thread.start()
    except RuntimeError:  # no second thread is available: this one does the work
        run()


def in_background(call: Callable[[], T], name: str) -> Task[T]:
    """Make a call on its own thread."""
    task = Task(call)
    start_thread(task.run, name)
    return task


class Pool:
    """A pool of up to this many threads, which run tasks in the order of submission.

    The context manager ends with its block; after an error, tasks that have not started are cancelled.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._most = threads
        self._name = name
        self._waiting: SimpleQueue[Task[Any] | None] = SimpleQueue()
        self._idle: deque[None] = deque()
        self._workers: list[_Worker] = []

    def submit(self, call: Callable[..., T], *arguments: Any) -> Task[T]:
        """Run ``call(*arguments)`` on one of the threads."""
        task = Task(partial(call, *arguments))
        self._waiting.put(task)
        if len(self._workers) < self._most and self._waiting.qsize() > len(self._idle):
            worker = _Worker(self._waiting, self._idle)
            self._workers.append(worker)
            start_thread(worker.run, f"{self._name}_{len(self._workers) - 1}")
        return task

    def map(self, call: Callable[[S], T], arguments: Iterable[S]) -> Iterator[T]:
        """The results of `call` for each, in order."""
        tasks = [self.submit(call, argument) for argument in arguments]
        return (task.result() for task in tasks)

    def close(self, *, cancels: bool) -> None:
        """End the threads after the submitted work, or with `cancels` after the started work."""
        while cancels:
            try:
                task = self._waiting.get_nowait()
            except Empty:
                break
            if task is not None:
                task.cancel()
        for _ in self._workers:
            self._waiting.put(None)
        for worker in self._workers:
            worker.join()
        self._workers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(cancels=error is not None)


class _Worker:
    """A thread of a pool. It also ends if the pool is no longer referenced."""

    def __init__(self, waiting: SimpleQueue[Task[Any] | None], idle: deque[None]) -> None:
        self._waiting = waiting
        self._idle = idle
        self._thread: threading.Thread
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _workers[id(self)] = self

    def run(self) -> None:
        self._thread = threading.current_thread()
        try:
            while True:
                self._idle.append(None)
                task = self._waiting.get()
                self._idle.pop()
                if task is None:
                    return
                task.run()
                del task  # and its results
        finally:
            _workers.pop(id(self), None)
            self._ended.release()

    def end(self) -> None:
        self._waiting.put(None)

    def join(self, seconds: float = -1) -> None:
        if self._ended.acquire(timeout=seconds):
            self._ended.release()
            self._thread.join()


#: Running threads. A thread that acquires the GIL after finalization would abort the process.
_workers: dict[int, _Worker] = {}
os.register_at_fork(after_in_child=_workers.clear)


@atexit.register
def _end_workers() -> None:
    workers = list(_workers.values())
    for worker in workers:
        worker.end()
    for worker in workers:
        worker.join(_PATIENCE)
