"""What gives the texts of a DuckDB session their meaning: its settings, and the functions that it defines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import duckdb

from lance_sql.catalog.access import UNRESTRICTED, Restrictions
from lance_sql.engines.duckdb.capabilities import CAPABILITIES
from lance_sql.engines.errors import translated
from lance_sql.text.kinds import KINDS, Does

T = TypeVar("T")

#: The method itself: `install` replaces it.
_CURSOR: Final = duckdb.DuckDBPyConnection.cursor

#: Where a statement begins, perhaps behind EXPLAIN.
_BEGIN: Final = re.compile(
    r"(?:\s|--[^\n]*\n|\((?:analyze|format)\b[^)]*\)|\(|(?:explain|analyze)\b)*(?P<word>[a-z]*)",
    re.IGNORECASE,
)
#: Statements on objects that are neither settings nor functions.
_ON_TABLE: Final = re.compile(
    r"\s*(?:create(?:\s+or\s+replace)?(?:\s+temp(?:orary)?)?|drop)\s+(?:table|view)\b", re.IGNORECASE
)

#: Functions and operators of which sessions make something else than calls, if nobody replaced them.
_STANDARD: Final = frozenset(
    {
        "!~~", "contains", "ends_with", "ilike_escape", "like_escape", "not_like_escape", "prefix",
        "starts_with", "suffix", "~~", "~~*",
    }
)  # fmt: skip

#: Numbers of all states: none comes twice.
_states: Final = itertools.count()


class Changes:
    """Counts what may change the meaning of texts in a database and its cursors.

    With `own`, all statements are known; otherwise somebody else may change something at any time.
    """

    def __init__(self, *, own: bool) -> None:
        self.own = own
        #: another number after each change; None if changes may go unnoticed
        self.state = self._first = next(_states) if own else None
        #: how many statements that we have seen may have changed names
        self.of_names = 0

    @property
    def are_none(self) -> bool:
        """Whether the database is new, and nothing has changed since."""
        return self.state is not None and self.state == self._first

    @contextmanager
    def during(self, text: str) -> Iterator[None]:
        """The statement `text` runs in this block."""
        begin = _BEGIN.match(text)
        assert begin is not None  # it also matches nothing
        does = KINDS.get(begin["word"].upper(), Does.OTHER)
        keeps_all = does & (Does.READS | Does.ROWS)
        if keeps_all and ";" not in text:
            yield  # no tables and views are created, renamed or dropped, and no other schema is the default
            return
        self.of_names += 1
        if keeps_all or _ON_TABLE.match(text, begin.start("word")):
            try:
                yield
            finally:
                self.of_names += 1  # others may have looked while it ran
            return
        if not does & (Does.OBJECTS | Does.SESSION | Does.TRANSACTION):
            self.state = None  # it may only run when its result is read
        self._count()
        try:
            yield
        finally:
            self._count()
            self.of_names += 1

    def _count(self) -> None:
        if self.state is not None:
            self.state = next(_states)


class Settings:
    """The settings and functions of one connection; they are read again after `changes`."""

    def __init__(self, connection: Callable[[], duckdb.DuckDBPyConnection], changes: Changes) -> None:
        self._connection = connection
        self._changes = changes
        self._known: dict[object, tuple[int, Any]] = {}

    def restrictions(self) -> Restrictions:
        """What statements may access, and whether settings are locked."""
        return UNRESTRICTED if self._changes.are_none else self._read(restrictions)

    def compares_bytes(self) -> bool:
        """Whether strings without a collation of their own are equal where their bytes are."""
        return self._read(compares_bytes)

    def orders_descending(self) -> bool:
        """Whether greater values come first in an ORDER BY without ASC or DESC."""
        return self._read(default_order).startswith("desc")

    def nulls_are_last(self, descending: bool) -> bool:
        """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""
        return _are_last(self._read(null_order), descending)

    def replaces_aggregates(self) -> bool:
        """Whether macros replace count, min or max."""
        return not self._changes.are_none and self._read(replaces_aggregates)

    def functions_are_standard(self) -> bool:
        """Whether functions that sessions replace certainly have their usual meaning."""
        if self._changes.are_none:
            return True
        # DuckDB lists its functions in the time of a query, which only pays if it is not done each time.
        return self._changes.state is not None and self._read(functions_are_standard)

    def _read(self, find: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        state = self._changes.state
        known = self._known.get(find)
        if known is not None and known[0] == state:
            value: T = known[1]
            return value
        try:
            value = find(self._connection())
        except duckdb.FatalException as error:
            raise translated(error, CAPABILITIES) from None
        if state is not None:
            self._known[find] = state, value
        return value


def restrictions(connection: duckdb.DuckDBPyConnection) -> Restrictions:
    """What statements of a connection may access, and whether settings are locked."""
    cursor = _CURSOR(connection)  # the connection itself may have a result that is not read yet
    try:
        enabled, locked = _settings(cursor, "enable_external_access", "lock_configuration")
        if enabled and _reads_files(cursor):
            return Restrictions(lock_configuration=locked)
        if enabled:
            return Restrictions(False, lock_configuration=locked)
        directories, paths = _settings(cursor, "allowed_directories", "allowed_paths")
        return Restrictions(False, tuple(directories), tuple(paths), locked)
    finally:
        cursor.close()


def _settings(connection: duckdb.DuckDBPyConnection, *names: str) -> Sequence[Any]:
    values = ", ".join(f"current_setting('{name}')" for name in names)
    return list(connection.execute(f"SELECT {values}").fetchall()[0])


def _reads_files(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether ``SET disabled_filesystems`` leaves the local one: the setting itself cannot be read."""
    try:
        connection.execute("FROM glob('/')").fetchall()
    except duckdb.PermissionException:
        return False
    return True


def compares_bytes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether strings without a collation of their own are equal where their bytes are."""
    rows = connection.sql("SELECT current_setting('default_collation')").fetchall()
    return not rows or str(rows[0][0]).lower() in ("", "binary")


def nulls_are_last(connection: duckdb.DuckDBPyConnection, descending: bool) -> bool:
    """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""
    return _are_last(null_order(connection), descending)


def default_order(connection: duckdb.DuckDBPyConnection) -> str:
    """The direction of an ORDER BY, as DuckDB calls it."""
    rows = connection.sql("SELECT current_setting('default_order')").fetchall()
    return str(rows[0][0]).lower() if rows else ""


def null_order(connection: duckdb.DuckDBPyConnection) -> str:
    """Where nulls come in an ORDER BY, as DuckDB calls it."""
    rows = connection.sql("SELECT current_setting('default_null_order')").fetchall()
    return str(rows[0][0]).lower() if rows else ""


def _are_last(order: str, descending: bool) -> bool:
    by_order = "nulls_first_on_asc_last_on_desc" if descending else "nulls_last_on_asc_first_on_desc"
    return order in ("nulls_last", "last", by_order)


def replaces_aggregates(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether macros replace count, min or max."""
    try:  # binds only functions that are aggregates
        connection.sql("SELECT count(*) FILTER (true), min(1) FILTER (true), max(1) FILTER (true)")
    except duckdb.Error:
        return True
    return False


def functions_are_standard(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether no macro or function of Python replaces one that texts are searched for."""
    names = ", ".join(f"'{name}'" for name in sorted(_STANDARD))
    rows = connection.sql(
        f"SELECT 1 FROM duckdb_functions() WHERE NOT internal AND lower(function_name) IN ({names})"
    ).fetchall()
    return not rows
