"""What happens while statements run: for the loggers under ``lance_sql``, and for whoever observes it.

`KINDS` lists the events. Credentials never appear in them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from lance_engine.legible import legible_line, without_secrets

#: for each kind of event, the level of its log and what it reports
KINDS: Final[Mapping[str, int]] = {
    "statement": logging.DEBUG,  # an SQL statement: until its rows can be read
    "scan": logging.DEBUG,  # a scan that has ended
    "request": logging.DEBUG,  # a request to an object store that was answered
    "retry": logging.INFO,  # a request that failed and is sent again
    "commit": logging.INFO,  # a new version
    "conflict": logging.INFO,  # a change that is repeated, because another writer committed first
}
_LONGEST: Final = 2000


class Event(NamedTuple):
    """Something that took `seconds` and ended now, with the text of the error if it failed."""

    kind: str
    attributes: Mapping[str, str | int | float]
    seconds: float
    error: str | None


Observer = Callable[[Event], None]
_observers: list[Observer] = []
_loggers: Final = {kind: logging.getLogger(f"lance_sql.{kind}") for kind in KINDS}


def observe(observer: Observer) -> Callable[[], None]:
    """Call `observer` with every event, from any thread, until the returned function is called.

    Its errors are logged, and change nothing else.
    """
    _observers.append(observer)
    return lambda: _observers.remove(observer) if observer in _observers else None


def is_observed(kind: str) -> bool:
    """Whether anyone wants events of a kind; otherwise nothing need be collected for them."""
    return bool(_observers) or _loggers[kind].isEnabledFor(KINDS[kind])


def emit(kind: str, seconds: float = 0.0, error: str | None = None, **attributes: Any) -> None:
    """Report that something has ended."""
    if not is_observed(kind):
        return
    shown = {name: _shown(value) for name, value in attributes.items()}
    event = Event(kind, shown, seconds, None if error is None else str(_shown(error)))
    pairs = [
        f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}" for name, value in shown.items()
    ]
    if error is not None:
        pairs.append(f"error={event.error!r}")
    _loggers[kind].log(KINDS[kind], "%s %s seconds=%.6f", kind, " ".join(pairs), seconds)
    for observer in tuple(_observers):
        try:
            observer(event)
        except Exception:  # what happened stays done: a commit must not look like a failed one
            _loggers[kind].exception("An observer of events failed")


@contextmanager
def timed(kind: str, **attributes: Any) -> Iterator[None]:
    """Report the time of a block, and the error that it raises."""
    begin = time.perf_counter()
    try:
        yield
    except BaseException as error:
        emit(kind, time.perf_counter() - begin, f"{type(error).__name__}: {error}", **attributes)
        raise
    emit(kind, time.perf_counter() - begin, **attributes)


def _shown(value: Any) -> str | int | float:
    if isinstance(value, int | float):
        return value
    text = legible_line(without_secrets(str(value)))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
