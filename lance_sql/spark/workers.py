"""What is particular to the Python processes in which Spark runs our code."""

from __future__ import annotations

import gc
import os
import socket
import sys
from pathlib import PurePath
from typing import Any

_settled = False


def settle() -> None:
    """Take what is loaded by now out of the collection of garbage, once, in a worker that Spark will reuse.

    Spark collects all garbage after every task and every call of the planner. With Arrow, pandas and this
    package loaded that takes 30 ms of processor time, longer than reading a small table.
    """
    global _settled
    if not _settled and os.environ.get("SPARK_REUSE_WORKER"):
        _settled = True
        gc.collect()
        gc.freeze()


class SentToWorkers:
    """Base of what Spark pickles and sends to its Python processes before it sends anything else."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        answer_at_once()
        self.__dict__.update(state)


def answer_at_once() -> None:
    """Acknowledge what Spark sent so far, and send small messages without waiting for its acknowledgement.

    The sockets between the JVM and its Python workers use Nagle's algorithm: a second small message waits
    until the first one is acknowledged, which the other side delays by 40 ms in the hope of an answer to send
    along. Spark tells each task what to do first and its partition or rows second, so every task waited.
    """
    connection = worker_socket()
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return  # Unix domain sockets, which newer versions of Spark can use, do not wait
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if sys.platform == "linux":  # lasts until the connection is used again, so every task asks for it
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def worker_socket() -> socket.socket | None:
    """The connection of this worker with the JVM; Spark's daemon holds it, further up the stack."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "worker" and PurePath(frame.f_code.co_filename).name == "daemon.py":
            connection = frame.f_locals.get("sock")
            return connection if isinstance(connection, socket.socket) else None
        frame = frame.f_back  # type: ignore[assignment]
    return None
