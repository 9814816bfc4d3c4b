"""The tables and views of a DuckDB connection that are not datasets, and its default schema."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import duckdb
from lance_engine.base import WeakIdentityDict

from lance_sql.catalog.engine_names import NO_NAMES, EngineNames
from lance_sql.engines.duckdb.settings import Changes


class _Session(NamedTuple):
    """What a session of a user's connection registered; `own_names` are deleted with it."""

    own_names: weakref.ref[OwnNames]
    registered: Callable[[], Iterable[str]]


#: The sessions around a connection: the names of one that was deleted, not closed, are left.
_SESSIONS: Final[WeakIdentityDict[duckdb.DuckDBPyConnection, list[_Session]]] = WeakIdentityDict()

#: What removes the names that `install` gave to a connection: a session around the connection replaces them.
UNINSTALL: Final[WeakIdentityDict[duckdb.DuckDBPyConnection, Callable[[], None]]] = WeakIdentityDict()

#: The default schema of a new database in memory.
_FIRST: Final = ("memory", "main")

_DEFAULT: Final = "SELECT current_database(), current_schema()"

_HERE: Final = (
    "NOT internal AND (temporary OR (database_name, schema_name) = (current_database(), current_schema()))"
)
_NAMES: Final = f"""
    SELECT lower(table_name), temporary, 'table' FROM duckdb_tables() WHERE {_HERE}
    UNION ALL SELECT lower(view_name), temporary, 'view' FROM duckdb_views() WHERE {_HERE}
"""


class _Read(NamedTuple):
    """What was read after this many changes of names."""

    changes: int
    default: tuple[str, str]
    #: name in lower case -> kind
    kinds: dict[str, str]


class OwnNames:
    """The names of one connection; they are read again after statements that may change them.

    Datasets are temporary views; `registered` returns their names. `run` runs a query unchanged.
    """

    def __init__(
        self,
        connection: Callable[[], duckdb.DuckDBPyConnection],
        changes: Changes,
        registered: Callable[[], Iterable[str]],
        run: Callable[[duckdb.DuckDBPyConnection, str], Any] = duckdb.DuckDBPyConnection.sql,
    ) -> None:
        self._connection = connection
        self._run = run
        self._changes = changes
        self._registered = registered
        self._read: _Read | None = None
        #: the default schema at the start of the session
        self.first = _FIRST if changes.own else self._default()
        if not changes.own:
            _SESSIONS.computed(connection(), list).append(_Session(weakref.ref(self), registered))

    def __call__(self) -> EngineNames:
        if self._changes.own and not self._changes.of_names:
            return NO_NAMES
        read = self._read
        if read is None or read.changes != self._changes.of_names:
            read = self._read = self._now()
        if not read.kinds and read.default == self.first:
            return NO_NAMES
        return EngineNames(read.default != self.first, self._without_datasets(read.kinds))

    def _without_datasets(self, kinds: Mapping[str, str]) -> dict[str, str]:
        datasets = {name.lower() for name in self._registered()}
        own = {name: kind for name, kind in kinds.items() if kind != "temporary view" or name not in datasets}
        if not self._changes.own and "temporary view" in own.values():
            left = self._left_by_others()
            own = {name: kind for name, kind in own.items() if kind != "temporary view" or name not in left}
        return own

    def _left_by_others(self) -> set[str]:
        """The names of deleted sessions, as when a notebook runs the cell again that opens its session."""
        sessions = _SESSIONS.get(self._connection(), [])
        if any(session.own_names() not in (None, self) for session in sessions):
            gc.collect()  # nothing else finds cycles in time
        left, used = set[str](), set[str]()
        for session in sessions:
            (left if session.own_names() is None else used).update(map(str.lower, session.registered()))
        return left - used

    def _now(self) -> _Read:
        number = self._changes.of_names
        try:
            default, rows = self._default(), self._run(self._connection(), _NAMES).fetchall()
        except (duckdb.TransactionException, duckdb.FatalException):  # only rolling back, or closing, is left
            return self._read or _Read(number, self.first, {})
        kinds: dict[str, str] = {}
        for name, temporary, kind in rows:
            if temporary or name not in kinds:
                kinds[name] = f"temporary {kind}" if temporary else kind
        return _Read(number, default, self._without_datasets(kinds))

    def _default(self) -> tuple[str, str]:
        """The database and schema in which names without dots are found first."""
        database, schema = self._run(self._connection(), _DEFAULT).fetchall()[0]
        return str(database), str(schema)
