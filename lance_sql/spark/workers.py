"""Settings for the Python processes in which Spark runs our code."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from lance_sql.spark.versions import task_has_one_processor, worker_socket

_settled = False


def settle() -> None:
    """Exclude loaded objects from garbage collection, once, in a worker that Spark will reuse.

    Spark runs a full garbage collection after every task and every call of the planner. With Arrow, pandas
    and this package loaded, that takes 30 ms of processor time, longer than reading a small table.
    """
    global _settled
    if not _settled and os.environ.get("SPARK_REUSE_WORKER"):
        _settled = True
        gc.collect()
        gc.freeze()


def has_one_processor() -> bool:
    """Whether Spark gave this task one processor, as it does by default, since other tasks run on the others.

    False outside of tasks, and where ``LANCE_SQL_THREADS`` says how many threads to use.
    """
    return "LANCE_SQL_THREADS" not in os.environ and task_has_one_processor()


class SentToWorkers:
    """Base class of objects that Spark pickles and sends to its Python processes first."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        answer_at_once()
        self.__dict__.update(state)


class SentFunction(SentToWorkers):
    """A function that Spark sends to its Python processes."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, argument: Any) -> Any:
        return self._function(argument)


def answer_at_once() -> None:
    """Acknowledge what Spark has sent, and send small messages without waiting for its acknowledgement.

    The sockets between the JVM and its Python workers use Nagle's algorithm: a second small message waits
    until the first one is acknowledged, which the receiver delays by up to 40 ms to combine it with a
    response. Spark sends each task its command first and its partition or rows second, so every task waited.
    """
    connection = worker_socket()
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return  # Unix domain sockets, which newer versions of Spark can use, are not affected
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":  # only valid until the connection is used again, so every task sets it
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
