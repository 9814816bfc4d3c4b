"""The session that users hold: the documented part of `SqlSession`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, overload

from lance_engine.base import Public

from lance_sql.engines.base import Parameters
from lance_sql.session.result import QueryResult
from lance_sql.session.sql_session import SqlSession
from lance_sql.session.variables import in_scope, run
from lance_sql.text.tokens import as_table

if TYPE_CHECKING:
    from types import FrameType

    from lance_engine.base import PlanPicture, ProgressOption

    from lance_sql.session.explanation import Explanation


class Connection(Public):
    """A session; its views, settings and registered names exist until it is closed. See `lance_sql.connect`.

    A statement reads the newest version of each dataset it names, at the time when it is planned. Only the
    datasets that a statement names are opened. ``_rowid`` and ``_rowaddr`` are columns of every dataset in a
    statement that uses one of them (and then part of ``*``). Each thread needs a connection of its own, a
    `cursor`: a call of a DuckDB session during one in another thread raises an error, as in DuckDB, and so
    does every call in a process that was forked.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    if not TYPE_CHECKING:  # type checkers see the real attributes only

        def __getattr__(self, name: str) -> Any:
            from lance_sql.other_names import CONNECTION, other_attribute

            return other_attribute(self, "A connection", name, CONNECTION, dir(type(self)))

    @property
    def engine(self) -> str:
        """The name of the engine: ``duckdb`` or ``datafusion``."""
        return self._session.engine

    def sql(self, text: str, params: Parameters = None, *, progress: ProgressOption = None) -> QueryResult:
        """Run the statements of `text`, separated by semicolons, and return the result of the last.

        A query is planned immediately, and runs when its rows are first read. Statements that change
        something run immediately; those that change a dataset are one atomic commit each and return the
        number of affected rows. `params` are the values for ``?`` and ``$1`` (a sequence) or ``$name`` (a
        mapping), in the last statement. `progress` reports the rows read while a query runs: True prints a
        progress bar, and a function is called with a `lance_engine.progress.ProgressEvent` ten times a
        second, in another thread; if it raises an exception, the statement is stopped.

        A name that is not a table can be a variable of the caller, as in `lance_sql.sql`, unless the session
        is without external access: ``FROM frame`` reads a data frame, an Arrow table or a dataset.

        SqlError for text that the engine refuses, TableNotFoundError for a name without a table.
        """
        return run(self._session, text, params, in_scope(_caller()), progress)

    def execute(
        self, text: str, params: Parameters = None, *, progress: ProgressOption = None
    ) -> QueryResult:
        """The same as `sql`, with its `text`, `params` and `progress`, under DuckDB's name for it."""
        return run(self._session, text, params, in_scope(_caller()), progress)

    def table(self, name: str) -> QueryResult:
        """The rows of the table, the view, or the dataset at the path `name`: ``FROM name``.

        TableNotFoundError for a name without a table.
        """
        return run(self._session, f"FROM {as_table(name)}", None, in_scope(_caller()))

    @overload
    def explain(
        self, text: str, params: Parameters = None, *, analyze: bool = False, html: Literal[False] = False
    ) -> Explanation: ...

    @overload
    def explain(
        self, text: str, params: Parameters = None, *, analyze: bool = False, html: Literal[True]
    ) -> PlanPicture: ...

    def explain(
        self, text: str, params: Parameters = None, *, analyze: bool = False, html: bool = False
    ) -> Explanation | PlanPicture:
        """The engine's plan for the statement `text`, and what it reads from each Lance dataset.

        `params` are as in `sql`. The statement only runs with `analyze`: the explanation then contains
        metrics of each part of the plan and what was read. With `html` the plan is a picture.
        """
        explanation = self._session.explain(text, params, analyze=analyze)
        return explanation.picture() if html else explanation

    def register(self, name: str, data: Any) -> None:
        """Register `data` as the table `name`, in place of what had the name.

        `data` is a dataset, the path of one, or Arrow data: what exports an Arrow stream, such as a table, a
        data frame, or a result of this session. InvalidArgumentError for anything else. Tables in the
        database of the engine are not affected; the name only exists in this session and in new cursors.
        """
        self._session.register(name, data)

    def tables(self) -> list[str]:
        """The names of the datasets in the directory."""
        return self._session.tables()

    def table_names(self) -> list[str]:
        """The names that a statement may use: datasets, and the engine's own tables and views."""
        return self._session.table_names()

    def cursor(self) -> Connection:
        """A connection to the same database for another thread; it must be closed separately.

        It shares tables and views, the directory, and the names registered so far.
        """
        return type(self)(self._session.cursor())

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._session.in_transaction

    def begin(self) -> None:
        """Begin a transaction, as ``BEGIN`` does: changes take effect with `commit`."""
        self._session.begin()

    def commit(self) -> None:
        """Commit the open transaction, with one new version for each dataset that it changed.

        CommitConflictError names the conflicting version of another writer; the transaction is then
        discarded, except for datasets that were already committed, which the error names.
        """
        self._session.commit()

    def rollback(self) -> None:
        """Roll back the open transaction and discard its changes."""
        self._session.rollback()

    def close(self) -> None:
        """Close the session. Rows that were read stay valid; unread results are lost."""
        self._session.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        session = self._session
        place = "" if session.catalog.directory is None else f" over {session.catalog.directory}"
        return f"<lance_sql.Connection {self.engine}{place}{' (closed)' if session.is_closed else ''}>"


def _caller() -> FrameType:
    """The frame from which a method is called, above what `Public` puts around it."""
    return sys._getframe(3)


def session_of(connection: Connection) -> SqlSession:
    """What is behind a connection, for other parts of lance-sql."""
    return connection._session
