"""Progress of long operations, in a terminal or notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from lance_engine.base import ProgressEvent

#: Width of the bar in a terminal, in characters.
_WIDTH = 30


class TerminalProgress:
    """A progress bar on one line of a terminal, for ``progress=``, `after` some seconds."""

    def __init__(self, stream: TextIO | None = None, *, after: float = 0) -> None:
        self._stream = stream or sys.stderr
        self._after = after
        self._shown = 0

    def __call__(self, event: ProgressEvent, /) -> None:
        if event.elapsed < self._after:
            return
        line = f"{event.stage} {_bar(event)}{described(event)}"
        self._stream.write("\r" + line.ljust(self._shown))
        self._stream.flush()
        self._shown = len(line)

    def close(self) -> None:
        """Remove the bar."""
        if self._shown:
            self._stream.write("\r" + " " * self._shown + "\r")
            self._stream.flush()
            self._shown = 0


class NotebookProgress:
    """A progress bar in the output of a notebook cell, for ``progress=``."""

    def __init__(self, display: Any = None) -> None:
        if display is None:
            import IPython.display

            display = IPython.display.display
        self._display = display
        self._handle: Any = None
        self._text = ""

    def __call__(self, event: ProgressEvent, /) -> None:
        done = _share(event)
        value = "" if done is None else f' value="{done:.4f}"'
        self._text = (
            f"<div>{html.escape(event.stage)} <progress max=1{value}></progress> "
            f"{html.escape(described(event))}</div>"
        )
        if self._handle is None:
            self._handle = self._display(self, display_id=True)
        else:
            self._handle.update(self)

    def _repr_html_(self) -> str:
        return self._text

    def close(self) -> None:
        """Keep the final state in the cell."""


def in_notebook() -> bool:
    """Whether this process is a notebook kernel."""
    if "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def bar(wanted: bool | None = None) -> Iterator[Callable[[ProgressEvent], None] | None]:
    """A progress bar for the current environment, for ``progress=``, or None.

    By default, a bar is shown in notebooks and terminals.

        with lance_sql.progress.bar() as progress:
            ds.compact(progress=progress)
    """
    if wanted is None:
        wanted = in_notebook() or sys.stderr.isatty()
    if not wanted:
        yield None
        return
    shown = NotebookProgress() if in_notebook() else TerminalProgress()
    try:
        yield shown
    finally:
        shown.close()


def described(event: ProgressEvent) -> str:
    """``1,000 of 4,000 rows, 2.0 MB, 3 files, 1.2 s, 3.6 s left``; zero or unknown parts are left out."""
    of = "" if event.total_rows is None else f" of {event.total_rows:,}"
    parts = [f"{event.rows:,}{of} {event.unit}"]
    if event.bytes:
        parts.append(f"{event.bytes / 1e6:,.1f} MB")
    if event.files:
        parts.append(f"{event.files:,} {'file' if event.files == 1 else 'files'}")
    parts.append(f"{event.elapsed:.1f} s")
    done = _share(event)
    if done is not None and 0 < done < 1:
        parts.append(f"{event.elapsed * (1 - done) / done:.1f} s left")
    return ", ".join(parts)


def _share(event: ProgressEvent) -> float | None:
    """The completed share of the stage, from 0 to 1."""
    if not event.total_rows:
        return None
    return min(event.rows / event.total_rows, 1.0)


def _bar(event: ProgressEvent) -> str:
    done = _share(event)
    if done is None:
        return ""
    full = round(done * _WIDTH)
    return f"[{'#' * full}{'.' * (_WIDTH - full)}] "
