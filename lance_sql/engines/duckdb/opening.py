"""New in-memory databases, which open on another thread.

That takes DuckDB two hundredths of a second, in which modules can be imported and tables opened.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from lance_engine.scan import helpers

if TYPE_CHECKING:
    import duckdb
    from lance_engine.base import Task

#: The process, and the database that opens in it before a session needs it.
_ahead: deque[tuple[int, Task[duckdb.DuckDBPyConnection]]] = deque(maxlen=1)


def open_ahead() -> None:
    """Begin to open the database of the next session, if DuckDB is imported already."""
    if "duckdb" in sys.modules and not _ahead:
        _ahead.append((os.getpid(), helpers().submit(_open)))


def opening() -> Callable[[], duckdb.DuckDBPyConnection]:
    """Begin to open a database, or take the one that was begun; the call returns its connection."""
    try:
        process, begun = _ahead.pop()
    except IndexError:
        return helpers().submit(_open).result
    # The threads of a parent process do not exist in its child.
    return begun.result if process == os.getpid() else helpers().submit(_open).result


def _open() -> duckdb.DuckDBPyConnection:
    import duckdb

    # Python variables are not tables: those in scope would be our own, not the caller's.
    return duckdb.connect(config={"python_enable_replacements": "false"})
