"""The common part of all engine sessions: registered tables, and error conversion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from lance_engine.errors import LanceError

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.errors import translated
from lance_sql.engines.statement_run import StatementRun
from lance_sql.pushdown_settings import NO_PUSHDOWNS, initial_pushdowns

if TYPE_CHECKING:
    from lance_sql.engines.table import EngineTable


class Scanned(Protocol):
    """The object that an engine scans for a dataset."""

    table: EngineTable


ScannedT = TypeVar("ScannedT", bound=Scanned)


class TableSession(Generic[ScannedT]):
    """A session of one engine."""

    capabilities: Capabilities

    def __init__(self) -> None:
        #: by registered name
        self._tables: dict[str, ScannedT] = {}
        #: which rules statements use
        self.pushdowns = initial_pushdowns()

    @contextmanager
    def without_pushdowns(self) -> Iterator[None]:
        """Statements that are planned and run in this block use no rules."""
        before, self.pushdowns = self.pushdowns, NO_PUSHDOWNS
        try:
            yield
        finally:
            self.pushdowns = before

    def translate(self, error: Exception, run: StatementRun) -> LanceError:
        """Our error for an engine error that ended `run`."""
        tables = (scanned.table for scanned in self._tables.values())
        return translated(error, self.capabilities, run.failure, tables)
