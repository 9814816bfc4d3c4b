"""One run of a statement: what its scans read, what ended them, and whether it is to end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, NamedTuple

from lance_engine.errors import LanceError

if TYPE_CHECKING:
    from lance_engine.expr.tree import Node
    from lance_engine.scan.scanner import Scanner

    from lance_sql.engines.join_keys import JoinKeys


class BegunScan(NamedTuple):
    """A scan of the table `name`; its metrics say what it has read so far."""

    name: str
    scanner: Scanner


class StatementRun:
    """Owned by whoever runs a statement, and told of by the scans that the engine makes for it.

    `interrupt` makes an engine that can be told so end the statement.
    """

    def __init__(self, interrupt: Callable[[], None] = lambda: None) -> None:
        self._interrupt = interrupt
        self.scans: list[BegunScan] = []
        #: the first error of a scan: engines pass on no more than its text
        self.failure: LanceError | None = None
        #: by the names of tables: what the rows have to pass that the statement needs of them
        self.only: dict[str, Node] = {}
        #: by the names of tables: how many rows the statement takes at most
        self.limits: dict[str, int] = {}
        #: by the names of tables: after how many rows the statement probably has what it needs
        self.expected: dict[str, int] = {}
        #: the keys that scans give one another
        self.join_keys: JoinKeys | None = None
        self._cancelled = False

    def began(self, name: str, scanner: Scanner) -> None:
        """A scan of the table `name` belongs to this run."""
        self.scans.append(BegunScan(name, scanner))

    def failed(self, error: Exception) -> None:
        """A scan ended with `error`."""
        if self.failure is None and isinstance(error, LanceError):
            self.failure = error

    def cancel(self) -> None:
        """End the statement with an error; called from another thread."""
        self._cancelled = True
        self._interrupt()

    def check(self) -> None:
        """Called between batches: fails once the statement is to end."""
        if self._cancelled:
            error = LanceError("the statement was cancelled")
            self.failed(error)
            raise error


class Runs:
    """Which run the scans belong to that begin now.

    With `side_by_side` several statements may run at once, and each thread has a run of its own: engines of
    that kind ask for scans on the thread that runs the statement.
    """

    def __init__(self, side_by_side: bool = False) -> None:
        self._place: threading.local | SimpleNamespace = (
            threading.local() if side_by_side else SimpleNamespace()
        )

    @property
    def current(self) -> StatementRun | None:
        found: StatementRun | None = getattr(self._place, "run", None)
        return found

    @contextmanager
    def during(self, run: StatementRun) -> Iterator[None]:
        """Scans that begin in the block belong to `run`."""
        before = self.current
        self._place.run = run
        try:
            yield
        finally:
            self._place.run = before
