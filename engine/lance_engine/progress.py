"""How long operations report progress and how they are cancelled.

An operation that takes ``progress`` calls it with a `ProgressEvent` now and then, from the thread that called
the operation. An exception that it raises cancels the operation: nothing of a new version stays.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TextIO

# Seconds between two events of the same stage.
_INTERVAL: Final = 0.1


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """How far an operation is.

    `stage` describes the current step. `rows` of `total_rows` (None if unknown) are done in
    this stage; what is counted is rows unless `unit` names something else, such as files. `bytes` and `files`
    were written so far by the whole operation, `elapsed` is in seconds.
    """

    stage: str
    rows: int
    total_rows: int | None
    bytes: int
    files: int
    elapsed: float
    unit: str = "rows"


class Progress(Protocol):
    """Anything that takes events; see the module."""

    def __call__(self, event: ProgressEvent, /) -> None: ...


#: What callers may give: True prints to standard error, False and None are silent.
ProgressOption = bool | Callable[[ProgressEvent], None] | None


class Reporter:
    """Counts for one operation and passes events on, at most ten per second and stage."""

    def __init__(self, progress: ProgressOption) -> None:
        self._progress: Progress | None = _Printer() if progress is True else (progress or None)
        self._started = time.monotonic()
        self._last = -_INTERVAL
        self._stage, self._unit = "", "rows"
        self._rows = 0
        self._total: int | None = None
        self.bytes = 0
        self.files = 0

    @property
    def is_silent(self) -> bool:
        """Whether there is no listener."""
        return self._progress is None

    def begin(self, stage: str, total_rows: int | None = None, unit: str = "rows") -> None:
        """Start a new stage and report it at once."""
        self._stage, self._rows, self._total, self._unit = stage, 0, total_rows, unit
        self._emit()

    def advance(self, rows: int) -> None:
        """Report this many more finished rows of this stage."""
        self._rows += rows
        if time.monotonic() - self._last >= _INTERVAL:
            self._emit()

    def update(self, rows: int, total_rows: int | None) -> None:
        """Set how many rows of this stage are finished, and how many are known so far."""
        self._rows, self._total = rows, total_rows
        if time.monotonic() - self._last >= _INTERVAL:
            self._emit()

    def wrote(self, size: int) -> None:
        """One more file of `size` bytes is written."""
        self.files += 1
        self.bytes += size

    def end(self) -> None:
        """Finish the stage and report it at once."""
        self._emit()

    def _emit(self) -> None:
        if self._progress is None:
            return
        self._last = time.monotonic()
        elapsed = self._last - self._started
        self._progress(
            ProgressEvent(self._stage, self._rows, self._total, self.bytes, self.files, elapsed, self._unit)
        )


class _Printer:
    """One line on standard error that is written over and over."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._stage = ""

    def __call__(self, event: ProgressEvent, /) -> None:
        stream = self._stream or sys.stderr
        if self._stage and event.stage != self._stage:
            stream.write("\n")
        self._stage = event.stage
        of = "" if event.total_rows is None else f" of {event.total_rows:,}"
        done = event.total_rows is not None and event.rows >= event.total_rows
        stream.write(f"\r{event.stage}: {event.rows:,}{of} {event.unit}, {event.elapsed:.1f} s")
        if done:
            stream.write("\n")
            self._stage = ""
        stream.flush()
