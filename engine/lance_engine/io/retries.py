"""Retrying requests to storage: which failures, after which pause, and for how long."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from lance_engine.errors import LanceError, MissingFileError, StorageUnavailableError
from lance_engine.events import emit
from lance_engine.io.access import refused
from lance_engine.io.cloud_options import Waiting
from lance_engine.io.object_errors import RETRIED, Failure, Outcome, failure_of

T = TypeVar("T")

# In seconds. Attempts end sooner for an unreachable server than for a busy one.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 5.0
_UNREACHABLE_FOR: Final = 2.5


class Request(NamedTuple):
    """A request as shown in errors; only the names of `options` are shown."""

    operation: str
    uri: str
    options: Mapping[str, Any]


class Retries:
    """The requests of one client; safe to use in several threads.

    After a store reports that it is too busy, all of them pause for a moment.
    """

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self._lock = threading.Lock()
        self._quiet_until = 0.0
        # How often in a row the store was too busy; the pause is shorter if it still answers other requests.
        self._busy_in_row = 0

    def run(
        self,
        request: Request,
        attempt: Callable[[int], T],
        on_failure: Callable[[Failure], Exception | None],
        *,
        once: bool = False,
    ) -> T:
        """The result of `attempt`, which gets the number of its call, counted from 0.

        `on_failure` may translate failures that are not worth another attempt. `once` never retries.
        """
        started = time.monotonic()
        number = 0
        while True:
            self._wait_for_quiet()
            try:
                result = attempt(number)
            except LanceError:
                raise
            except Exception as error:
                failure = failure_of(error)
                number += 1
                elapsed = time.monotonic() - started
                if failure.outcome not in RETRIED:
                    # The error of the client can hold addresses with signatures.
                    raise on_failure(failure) or _meaning(failure, request) from None
                pause = _pause(number - 1)
                if once or elapsed + pause > self._patience(failure):
                    raise _unavailable(failure, request, number, elapsed) from None
                emit(
                    "retry", elapsed, operation=request.operation, path=request.uri,
                    outcome=failure.outcome.name.lower(), reason=failure.reason, pause=pause,
                )  # fmt: skip
                if failure.outcome is Outcome.BUSY:
                    self._be_quiet()
            else:
                self._busy_in_row = 0
                emit(
                    "request", time.monotonic() - started, operation=request.operation, path=request.uri,
                    attempts=number + 1,
                )  # fmt: skip
                return result
            time.sleep(pause)

    def _patience(self, failure: Failure) -> float:
        if failure.outcome is Outcome.UNREACHABLE:
            return min(self._waiting.retry, _UNREACHABLE_FOR)
        return self._waiting.retry

    def _be_quiet(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now >= self._quiet_until:  # otherwise it answers earlier requests
                self._quiet_until = now + _pause(self._busy_in_row)
                self._busy_in_row += 1

    def _wait_for_quiet(self) -> None:
        left = self._quiet_until - time.monotonic()
        if left > 0:
            # Not all at the same moment.
            time.sleep(left * random.uniform(1.0, 1.5))


def _pause(failures: int) -> float:
    """Seconds to wait after this many earlier failures."""
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(failures, 16)) * random.uniform(0.5, 1.0)


def _meaning(failure: Failure, request: Request) -> Exception:
    match failure.outcome:
        case Outcome.MISSING:
            return MissingFileError("Object not found", path=request.uri)
        case Outcome.TAKEN:
            return FileExistsError(request.uri)
        case Outcome.REFUSED:
            return refused(request.uri, request.options, failure.reason)
    return StorageUnavailableError(
        f"The storage request failed: {failure.reason}",
        path=request.uri,
        operation=request.operation,
    )


_REMEDIES: Final = {
    Outcome.UNREACHABLE: "Check the endpoint in storage_options, and the network",
    Outcome.BUSY: "Retry later, or increase retry_timeout",
}


def _unavailable(
    failure: Failure, request: Request, attempts: int, elapsed: float
) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"Storage is not responding: {failure.reason}",
        path=request.uri,
        operation=request.operation,
        attempts=attempts,
        elapsed=f"{elapsed:.1f} s",
        remedy=_REMEDIES.get(
            failure.outcome,
            "Retry later, or increase request_timeout and retry_timeout in storage_options",
        ),
    )
