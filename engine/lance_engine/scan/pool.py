"""The decoding threads: results in order, with limited read-ahead."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

from lance_engine.machine import processors
from lance_engine.tasks import Pool, Task

Work = TypeVar("Work")
Result = TypeVar("Result")

#: Minimum number of rows looked up in local files for which several threads share the work: for fewer rows,
#: they only slow each other down.
PARALLEL_ROWS = 256


def num_threads() -> int:
    """Number of decoding threads: ``LANCE_SQL_THREADS``, by default one per processor."""
    configured = os.environ.get("LANCE_SQL_THREADS", "")
    return max(1, int(configured)) if configured.isdigit() else processors()


@cache
def _pool(process: int) -> Pool:
    # One pool per process: threads do not survive a fork.
    return Pool(num_threads(), "lance-scan")


def ordered_map(work: Callable[[Work], Result], tasks: Iterator[Work], read_ahead: int) -> Iterator[Result]:
    """`work` for `tasks` on the decoding threads, with results in the order of the tasks.

    At most `read_ahead` results are waiting or being computed. Closing the iterator cancels tasks that have
    not started.
    """
    first = next(tasks, None)
    if first is None:
        return
    second = next(tasks, None)
    if second is None:  # using another thread would cost more than it gains
        yield work(first)
        return
    pool = _pool(os.getpid())
    pending: deque[Task[Result]] = deque([pool.submit(work, first), pool.submit(work, second)])
    try:
        while pending:
            while len(pending) < read_ahead and (task := next(tasks, None)) is not None:
                pending.append(pool.submit(work, task))
            yield pending.popleft().result()
    finally:
        for begun in pending:
            begun.cancel()
