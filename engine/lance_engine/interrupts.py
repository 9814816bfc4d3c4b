"""Ctrl-C during one long call that does not check for it."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import TypeVar

from lance_engine.tasks import in_background

T = TypeVar("T")


def interruptible(compute: Callable[[], T]) -> T:
    """What `compute` returns; an interruption of the main thread does not wait for it.

    Only for work without side effects: it may continue for a while, and its result is discarded.
    """
    if threading.current_thread() is not threading.main_thread():
        return compute()
    return in_background(compute, "lance computation").result()


def load(module: str) -> None:
    """Import a large library as a whole, before an import statement names it.

    A module whose import is interrupted stays half imported as long as the process lives.
    """
    if module not in _loaded:
        interruptible(lambda: importlib.import_module(module))
        _loaded.add(module)


_loaded: set[str] = set()
