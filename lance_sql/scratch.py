"""A DuckDB database for what a statement needs computed outside the session of the user: types and constants.

A new database takes longer to set up than a small statement to run, so a process has one for all.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

_lock = threading.Lock()
_databases: list[duckdb.DuckDBPyConnection] = []
#: Those of a parent process: their threads did not come along, so that they cannot even be closed.
_left_behind: list[duckdb.DuckDBPyConnection] = []


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """A session of a database in memory, which nobody else has.

    Temporary tables, registered names and settings of a session end with the block. The main schema and
    global settings are shared by all threads: leave them as they are.
    """
    with _lock:
        if not _databases:
            import duckdb

            _databases.append(duckdb.connect())
        session = _databases[0].cursor()
    try:
        yield session
    finally:
        session.close()


@atexit.register
def _close() -> None:
    while _databases:
        _databases.pop().close()


def _leave_behind() -> None:
    global _lock
    _lock = threading.Lock()
    _left_behind.extend(_databases)
    _databases.clear()


os.register_at_fork(after_in_child=_leave_behind)
