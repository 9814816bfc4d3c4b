"""Ctrl-C during one long call that does not check for it."""

from __future__ import annotations

import gc
import importlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, ModuleType
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

    A library whose import is interrupted stays half imported as long as the process lives. Ctrl-C therefore
    waits until the import has ended.
    """
    loaded = _loaded.get(module)
    if loaded is None:
        with _interrupted_later(), _collected_later():
            loaded = _loaded[module] = importlib.import_module(module)
    return loaded


@contextmanager
def _interrupted_later() -> Iterator[None]:
    """Call the handler of Ctrl-C at the end, where it was called meanwhile."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: list[tuple[int, FrameType | None]] = []

    def remember(number: int, frame: FrameType | None) -> None:
        seen.append((number, frame))

    try:
        with suppress(ValueError):  # in interpreters that are not the main one
            signal.signal(signal.SIGINT, remember)
        yield
    finally:
        # A library may have a handler of its own since.
        if signal.getsignal(signal.SIGINT) is remember:
            signal.signal(signal.SIGINT, handler)
        if seen:
            handler(*seen[-1])


@contextmanager
def _collected_later() -> Iterator[None]:
    """Without garbage collection: modules stay, and looking for garbage among them takes time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_loaded: dict[str, ModuleType] = {}
