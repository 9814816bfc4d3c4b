"""What the SQL layer adds to the error classes of the engine."""

from __future__ import annotations

from lance_engine.errors import LanceError


class SqlError(LanceError, ValueError):
    """The SQL engine refused a statement or failed while running it; the message is the engine's own."""


class EngineNotInstalledError(LanceError, ImportError):
    """The SQL engine asked for is unknown or its package is not installed."""

    __str__ = LanceError.__str__
