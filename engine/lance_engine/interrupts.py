"""Ctrl-C during one long call that does not check for it."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import ModuleType
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


def load(module: str) -> ModuleType:
    """Import a module as a whole, with all that it imports, before an import statement names it.

    A library whose import is interrupted stays half imported as long as the process lives. Here another
    thread, which no signal reaches, completes what the interrupted one waited for.
    """
    found = _loaded.get(module)
    if found is None:
        found = _loaded[module] = interruptible(lambda: _import(module))
    return found


def _import(module: str) -> ModuleType:
    # Threads that import modules of each other at the same time would see them half imported.
    with _importing:
        return importlib.import_module(module)


_importing = threading.RLock()
_loaded: dict[str, ModuleType] = {}
