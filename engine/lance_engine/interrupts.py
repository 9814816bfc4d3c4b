"""Ctrl-C while something is computed in one long call that does not look for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def interruptible(compute: Callable[[], T]) -> T:
    """What `compute` returns; an interruption of the main thread does not wait for it.

    Only for what changes nothing: it may go on for a while, and its result goes nowhere.
    """
    if threading.current_thread() is not threading.main_thread():
        return compute()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(compute())
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=run, name="lance computation", daemon=True).start()
    return result.result()
