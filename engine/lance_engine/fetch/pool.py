"""Threads that wait for storage: one group makes requests, the other may wait for several of them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from queue import SimpleQueue
from typing import Final, TypeVar

from lance_engine.metrics import counting, current_metrics
from lance_engine.tasks import Pool
from lance_engine.tasks import Task as Begun

_HELPER: Final = "lance-open"

Task = TypeVar("Task")
Result = TypeVar("Result")

_DEFAULT_REQUESTS: Final = 64
#: Running tasks that prepare reading, such as opening a file: they make requests and parse the answers.
MOST_AHEAD: Final = 64
# The consumer needs more results than this: from now on it may take many.
_PATIENCE: Final = 8

_configured: int | None = None


def requests_in_flight() -> int:
    """The number of concurrent requests to a store: ``LANCE_SQL_REQUESTS``, otherwise 64."""
    if _configured is not None:
        return _configured
    text = os.environ.get("LANCE_SQL_REQUESTS", "")
    return max(1, int(text)) if text.isdigit() else _DEFAULT_REQUESTS


def set_requests_in_flight(count: int | None) -> None:
    """Limit the concurrent requests to each store, from its next use on; None: the default."""
    global _configured
    if count is not None and count < 1:
        raise ValueError("at least one request must be in flight")
    _configured = count


class Slots:
    """This many requests may be in flight; a caller with several waits until there is room for all."""

    def __init__(self, most: int) -> None:
        self._turn = threading.Lock()
        self._free: SimpleQueue[bool] = SimpleQueue()
        for _ in range(most):
            self._free.put(True)

    @contextmanager
    def held(self, count: int = 1) -> Iterator[None]:
        """A block that makes `count` requests."""
        taken: deque[bool] = deque()
        try:
            with self._turn:
                # One call, which keeps what it took where an interrupt ends it.
                taken.extend(islice(iter(self._free.get, False), count))
            yield
        finally:
            for slot in taken:
                self._free.put(slot)


class RequestPool:
    """The threads and the slots for the requests of one store in this process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.threads = Pool(most, "lance-fetch")
        #: a reader holds one, on any thread
        self.slots = Slots(most)


# One pool per process: threads do not survive a fork.
@cache
def request_pool(process: int, root: str, most: int) -> RequestPool:
    """The pool for all stores below a root such as ``s3://bucket``."""
    return RequestPool(most)


@cache
def _helpers(process: int) -> Pool:
    return Pool(MOST_AHEAD, _HELPER)


def helpers() -> Pool:
    """Threads for tasks that wait for requests; these tasks must not wait for each other."""
    return _helpers(os.getpid())


def ordered_ahead(
    work: Callable[[Task], Result], tasks: Iterator[Task], first: int = MOST_AHEAD
) -> Generator[tuple[Task, Result]]:
    """Tasks with their results, in order, many of which are begun before they are requested.

    At first, `first` tasks begin early, later more and more. Errors are raised in place of the result.
    Closing the iterator cancels tasks that have not begun.
    """
    pending: deque[tuple[Task, Begun[Result]]] = deque()
    ahead, given = first, 0
    try:
        while True:
            while len(pending) < ahead and (task := next(tasks, _END)) is not _END:
                assert not isinstance(task, _End)
                pending.append((task, helpers().submit(work, task)))
            if not pending:
                return
            task, begun = pending.popleft()
            yield task, begun.result()
            given += 1
            if given >= _PATIENCE:
                ahead = min(2 * ahead, MOST_AHEAD)
    finally:
        for _, begun in pending:
            begun.cancel()


def each_ahead(work: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[Result]:
    """The results of tasks that wait for requests, in order, many of which are begun together.

    In a helper, which must not wait for others, one after the other.
    """
    if len(tasks) < 2 or threading.current_thread().name.startswith(_HELPER):
        yield from map(work, tasks)
        return
    metrics = current_metrics()

    def counted(task: Task) -> Result:
        with counting(metrics):
            return work(task)

    with closing(ordered_ahead(counted, iter(tasks))) as counted_results:
        for _, result in counted_results:
            yield result


class _End:
    """Marks the end of an iterator."""


_END: Final = _End()
