"""The cache of sessions for the next calls of `lance_sql.sql`.

A new database takes longer to start than a small query to run, and what a session learns of a dataset (its
metadata, which conditions pay) is worth keeping. A call has a cached session to itself, so calls do not see
each other: only statements that leave nothing behind get one, and no session is used again as long as a
result of it is alive.
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from typing import Final

from lance_sql.session.sql_session import SqlSession
from lance_sql.text.kinds import Does
from lance_sql.text.statement import Statement, once_per_statement

#: Sessions that wait for a call: more are only there when results are held, or threads run queries at once.
_MOST: Final = 4
#: Datasets that a session opens before another takes its place, so that what it holds is bounded.
_MOST_DATASETS: Final = 16

#: Words of queries that change the session or look at it, wherever they are; some are merely suspected.
_OTHER_WORDS: Final = frozenset({"describe", "into", "pivot", "setseed", "show", "unpivot"})
_CATALOGS: Final = ("duckdb_", "information_schema", "pg_", "pragma_", "sqlite_")

_cache: deque[SqlSession] = deque(maxlen=_MOST)


@once_per_statement
def leaves_nothing(statement: Statement) -> bool:
    """Whether `statement` plainly neither changes a session nor shows what it contains."""
    words = [token.value.lower() for token in statement.tokens if token.kind in ("word", "quoted")]
    return (
        bool(statement.does & Does.QUERY)
        and _OTHER_WORDS.isdisjoint(words)
        and not any(word.startswith(_CATALOGS) for word in words)
    )


def take() -> SqlSession:
    """A session of which nobody holds a result; give it back with `keep`, unless a statement has failed."""
    for _ in range(len(_cache)):
        try:
            session = _cache.popleft()
        except IndexError:  # other threads were faster
            break
        if session.is_idle:
            return session
        _cache.append(session)
    return SqlSession.without_views()


def keep(session: SqlSession) -> None:
    """Keep a session for a later call; its last result may still be in use."""
    if session.catalog.opened < _MOST_DATASETS:
        _cache.append(session)


def _close_all() -> None:
    """Before a fork: the threads of a database do not exist in the child, which would crash when it ends.

    And at exit: databases that are deleted after their modules make DuckDB complain of leaks.
    """
    while _cache:
        session = _cache.popleft()
        if session.is_idle:
            session.close()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_all)
