"""Panics of DataFusion: Python raises them as exceptions of a class outside of `Exception`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lance_sql.engines.datafusion.capabilities import CAPABILITIES
from lance_sql.engines.datafusion.versions import is_panic
from lance_sql.errors import SqlError


@contextmanager
def panics_as_errors() -> Iterator[None]:
    """Raises `SqlError` for a panic in the block."""
    try:
        yield
    except BaseException as error:
        if not is_panic(error):
            raise
        raise SqlError(
            f"DataFusion failed: {error}",
            remedy="This is a fault of DataFusion. Write the statement differently, or use "
            "lance_sql.connect(engine='duckdb')",
            engine=CAPABILITIES.name,
        ) from error
