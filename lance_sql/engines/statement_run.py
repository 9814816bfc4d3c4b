"""One run of a statement: what its scans have read, their errors, and cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import LanceError

if TYPE_CHECKING:
    from lance_engine.expr import Node
    from lance_engine.scan import FilterPlan, Scanner

    from lance_sql.engines.join_keys import JoinKeys


class BegunScan(NamedTuple):
    """A scan of the table `name`; its metrics count what it has read so far."""

    name: str
    scanner: Scanner


class StatementRun:
    """Created by whoever runs a statement; the scans that the engine starts for it report here.

    `interrupt` stops the statement in engines that support it.
    """

    def __init__(self, interrupt: Callable[[], None] = lambda: None) -> None:
        self._interrupt = interrupt
        self.scans: list[BegunScan] = []
        #: the first error of a scan: engines only pass on its text
        self.failure: LanceError | None = None
        #: by table name: conditions for the rows that the statement needs
        self.only: dict[str, list[Node | FilterPlan]] = {}
        #: by table name: the positions of the rows that the statement reads, if it reads no others
        self.ranges: dict[str, range] = {}
        #: by table name: the number of rows after which the statement probably has what it needs
        self.expected: dict[str, int] = {}
        #: whether the statement certainly scans one table only, once
        self.has_one_scan = False
        #: whether a stream should have what datasets store of the values, and whether it has
        self.wants_stored = False
        self.has_stored = False
        #: the keys that scans pass to one another
        self.join_keys: JoinKeys | None = None
        self._cancelled = False

    def require(self, name: str, condition: Node | FilterPlan) -> None:
        """Only rows of the table `name` that pass the condition are needed."""
        self.only.setdefault(name, []).append(condition)

    def began(self, name: str, scanner: Scanner) -> None:
        """Register a scan of the table `name`."""
        self.scans.append(BegunScan(name, scanner))

    def failed(self, error: Exception) -> None:
        """Record that a scan failed with `error`."""
        if self.failure is None and isinstance(error, LanceError):
            self.failure = error

    def cancel(self) -> None:
        """Stop the statement with an error; called from another thread."""
        self._cancelled = True
        self._interrupt()

    def check(self) -> None:
        """Called between batches: raises if the statement was cancelled."""
        if self._cancelled:
            error = LanceError("the statement was cancelled")
            self.failed(error)
            raise error


class Runs:
    """The run that new scans belong to.

    With `side_by_side`, several statements may run at once, and each thread has its own run: such engines
    start scans on the thread that runs the statement, or in a block of `elsewhere`.
    """

    def __init__(self, side_by_side: bool = False) -> None:
        self._place: threading.local | SimpleNamespace = (
            threading.local() if side_by_side else SimpleNamespace()
        )
        #: the run of threads without one of their own
        self._elsewhere: StatementRun | None = None
        self._alone = threading.Lock()

    @property
    def current(self) -> StatementRun | None:
        run: StatementRun | None = getattr(self._place, "run", None)
        return run or self._elsewhere

    @contextmanager
    def elsewhere(self, run: StatementRun) -> Iterator[None]:
        """Scans that an engine starts on threads of its own in this block belong to `run`."""
        with self._alone:
            self._elsewhere = run
            try:
                yield
            finally:
                self._elsewhere = None

    @contextmanager
    def during(self, run: StatementRun) -> Iterator[None]:
        """Scans that start in this block belong to `run`."""
        before = getattr(self._place, "run", None)
        self._place.run = run
        try:
            yield
        finally:
            self._place.run = before
