"""The Python database API (PEP 249) over sessions: ``lance_sql.dbapi.connect("directory")``.

Statements that change rows begin a transaction, which `Connection.commit` ends. Other statements take effect
at once, unless a transaction is open that does not support them. ``connect(..., autocommit=True)`` commits
each statement.
"""

from __future__ import annotations

import datetime
import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.types as at
from lance_engine.errors import (
    AmbiguousMergeError,
    CommitConflictError,
    ConstraintError,
    CorruptFileError,
    IncompatibleChangeError,
    LanceError,
    SchemaMismatchError,
    StorageError,
    UnsupportedFeatureError,
)

from lance_sql.api import connect as open_session
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.text.kinds import Does
from lance_sql.text.script import split

if TYPE_CHECKING:
    from lance_sql.session.connection import Connection as Session
    from lance_sql.session.result import QueryResult

__all__ = ["Connection", "Cursor", "apilevel", "connect", "paramstyle", "threadsafety"]

apilevel: Final = "2.0"
#: Threads may share the module, but not connections.
threadsafety: Final = 1
#: ``?``; ``$name`` with a mapping and ``:name`` are also accepted.
paramstyle: Final = "qmark"


class Warning(Exception):  # noqa: N818 - the name is that of PEP 249
    """An important warning, such as truncated data; never raised by this module."""


class Error(Exception):
    """Base class of all errors of this module; its cause is the error of `lance_sql`."""


class InterfaceError(Error):
    """A mistake in the use of this module, such as a closed cursor."""


class DatabaseError(Error):
    """An error of the database."""


class DataError(DatabaseError):
    """A value is out of range or has the wrong type."""


class OperationalError(DatabaseError):
    """Storage failed, or another writer committed first: not a mistake of the program."""


class IntegrityError(DatabaseError):
    """A constraint was violated: such as a null in a NOT NULL column, or an ambiguous merge."""


class InternalError(DatabaseError):
    """A file is damaged."""


class ProgrammingError(DatabaseError):
    """The statement is invalid: its syntax, tables, columns or parameters."""


class NotSupportedError(DatabaseError):
    """An operation that datasets or the engine do not support."""


_KINDS: Final = (
    (UnsupportedFeatureError, NotSupportedError),
    (CorruptFileError, InternalError),
    (AmbiguousMergeError, IntegrityError),
    (ConstraintError, IntegrityError),
    (SchemaMismatchError, IntegrityError),
    (CommitConflictError, OperationalError),
    (IncompatibleChangeError, OperationalError),
    (StorageError, OperationalError),
    (SqlError, ProgrammingError),
    (TableNotFoundError, ProgrammingError),
    (LanceError, DatabaseError),
)

#: Constructors of PEP 249.
Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802
    """The local date for a Unix timestamp."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """The local time of day for a Unix timestamp."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """The local time for a Unix timestamp."""
    return datetime.datetime(*time.localtime(ticks)[:6])


class _TypeObject:
    """Equal to the type codes in a description that belong to its group."""

    def __init__(self, *tests: Any) -> None:
        self._tests = tests

    def __eq__(self, other: object) -> bool:
        return isinstance(other, pa.DataType) and any(test(other) for test in self._tests)

    def __hash__(self) -> int:
        return hash(self._tests)


STRING: Final = _TypeObject(at.is_string, at.is_large_string, at.is_string_view)
BINARY: Final = _TypeObject(at.is_binary, at.is_large_binary, at.is_fixed_size_binary, at.is_binary_view)
NUMBER: Final = _TypeObject(at.is_integer, at.is_floating, at.is_decimal, at.is_boolean)
DATETIME: Final = _TypeObject(at.is_temporal)
ROWID: Final = _TypeObject(at.is_uint64)

#: What PEP 249 names, besides what opens connections.
_NAMED: Final = (
    "BINARY", "Binary", "DATETIME", "DataError", "DatabaseError", "Date", "DateFromTicks", "Error",
    "IntegrityError", "InterfaceError", "InternalError", "NUMBER", "NotSupportedError", "OperationalError",
    "ProgrammingError", "ROWID", "STRING", "Time", "TimeFromTicks", "Timestamp", "TimestampFromTicks",
    "Warning",
)  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*__all__, *_NAMED])


#: First keywords of statements that begin a transaction, and of those that return a count.


def connect(
    directory: str | os.PathLike[str] | None = None,
    engine: Any = "duckdb",
    *,
    autocommit: bool = False,
    **options: Any,
) -> Connection:
    """Open a session as a PEP 249 connection.

    `directory`, `engine` and `options` are the arguments of `lance_sql.connect`. With `autocommit`, each
    statement is committed immediately; otherwise the first change begins a transaction.
    """
    with _translated():
        return Connection(open_session(directory, engine, **options), autocommit=autocommit)


@contextmanager
def _translated() -> Iterator[None]:
    """Convert errors of `lance_sql` to those of PEP 249."""
    try:
        yield
    except LanceError as error:
        kind = next(kind for ours, kind in _KINDS if isinstance(error, ours))
        raise kind(str(error)) from error


class Connection:
    """A session with the methods of PEP 249. Leaving its block commits, or rolls back after an error.

    `connect` makes one of a `session` of `lance_sql.connect`; `autocommit` can be changed at any time.
    """

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, session: Session, *, autocommit: bool = False) -> None:
        #: the session that statements run in
        self.session = session
        #: whether each statement is committed immediately
        self.autocommit = autocommit
        self._closed = False

    def cursor(self) -> Cursor:
        """A new cursor; all cursors of a connection share its transaction."""
        self._check_open()
        return Cursor(self)

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Run a statement in a new cursor, and return it."""
        return self.cursor().execute(operation, parameters)

    def commit(self) -> None:
        """Commit the changes since the last commit; OperationalError if another writer committed first."""
        self._check_open()
        if self.session.in_transaction:
            with _translated():
                self.session.commit()

    def rollback(self) -> None:
        """Undo the changes since the last commit."""
        self._check_open()
        if self.session.in_transaction:
            with _translated():
                self.session.rollback()

    def close(self) -> None:
        """Close the session; uncommitted changes are discarded."""
        if not self._closed:
            self._closed = True
            with _translated():
                self.session.close()

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("The connection is closed")

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._closed:
            return
        try:
            if kind is None:
                self.commit()
            else:
                self.rollback()
        finally:
            self.close()


class Cursor:
    """Runs statements of `connection` and returns their rows."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: default number of rows for `fetchmany`
        self.arraysize = 1
        self._result: QueryResult | None = None
        self._rowcount = -1
        self._closed = False

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """Name, Arrow type and nullability of each column; None if the statement returns no rows."""
        if self._result is None:
            return None
        return [
            (field.name, field.type, None, None, None, None, field.nullable)
            for field in self._result.arrow().schema
        ]

    @property
    def rowcount(self) -> int:
        """The number of rows that the last statement changed or returned; -1 if unknown."""
        return self._rowcount

    def execute(self, operation: str, parameters: Any = None) -> Cursor:
        """Run the statements of a text; `parameters` apply to the last one.

        A sequence for ``?``, or a mapping for ``$name`` and ``:name``.
        """
        self._check_open()
        with _translated():
            *before, last = split(operation)
            for statement in before:
                self._run(statement, None)
            self._run(last, parameters)
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Any]) -> Cursor:
        """Run a statement once for each set of parameters; `rowcount` is the sum."""
        total = 0
        alone = self.connection.autocommit and not self.connection.session.in_transaction
        with _translated():
            if alone:
                self.connection.session.begin()
            try:
                for parameters in seq_of_parameters:
                    self.execute(operation, parameters)
                    total += max(self._rowcount, 0)
            except BaseException:
                if alone:
                    self.connection.session.rollback()
                raise
            if alone:
                self.connection.session.commit()
        self._rowcount = total
        return self

    def _run(self, statement: Any, parameters: Any) -> None:
        session = self.connection.session
        tokens = statement.tokens
        changes = bool(statement.does & Does.ROWS)
        if changes and not self.connection.autocommit and not session.in_transaction:
            session.begin()
        text, given = _bound(statement, parameters)
        result = session.sql(text, given)
        self._result, self._rowcount = None, -1
        if statement.does & Does.TRANSACTION:
            return
        rows = result.arrow()
        if changes and rows.schema.names == ["Count"] and not any(t.upper == "RETURNING" for t in tokens):
            self._rowcount = rows.column(0)[0].as_py()
        elif rows.schema.names != ["Success"]:
            self._result, self._rowcount = result, rows.num_rows

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, None after the last."""
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next `size` rows, by default `arraysize`."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The remaining rows."""
        return self._rows().fetchall()

    def fetch_arrow_table(self) -> pa.Table:
        """All rows as an Arrow table, as in ADBC."""
        return self._rows().arrow()

    def fetch_df(self) -> Any:
        """All rows as a pandas data frame."""
        return self._rows().df()

    def setinputsizes(self, sizes: Any) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: Any, column: Any = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def close(self) -> None:
        """Discard the rows."""
        self._closed, self._result = True, None

    def _rows(self) -> QueryResult:
        self._check_open()
        if self._result is None:
            raise InterfaceError("No result: run a query first")
        return self._result

    def _check_open(self) -> None:
        if self._closed:
            raise InterfaceError("The cursor is closed")
        self.connection._check_open()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bound(statement: Any, parameters: Any) -> tuple[str, Any]:
    """The text and parameters of a statement, with ``$name`` in place of ``:name``."""
    text = statement.original
    if not isinstance(parameters, Mapping):
        return text, list(parameters) if parameters is not None and len(parameters) else None
    pieces, last = [], 0
    tokens = statement.tokens
    for colon, name in itertools.pairwise(tokens):
        is_name = colon.text == ":" and name.start == colon.end and name.value in parameters
        # Not a cast, x::INT, or the end of a slice, x[1:n].
        if is_name and not re.search(r"[\w\])\"':]$", text[: colon.start]):
            pieces += [text[last : colon.start], "$"]
            last = colon.end
    return "".join([*pieces, text[last:]]), dict(parameters) or None
