"""A DuckDB database for computations outside the user's session: types and constants.

Setting up a database takes longer than a small statement, so each process has a single one.
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
#: Databases inherited by fork: their threads do not exist here, so they cannot even be closed.
_left_behind: list[duckdb.DuckDBPyConnection] = []


@contextmanager
def scratch() -> Iterator[duckdb.DuckDBPyConnection]:
    """Exclusive use of a session of an in-memory database.

    Temporary tables, registered names and settings of a session are dropped at the end of the block. The main
    schema and global settings are shared by all threads: do not change them.
    """
    with _lock:
        if not _databases:
            import duckdb

            # Expressions and types need no files, whatever a statement writes into them.
            _databases.append(duckdb.connect(config={"enable_external_access": "false"}))
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
