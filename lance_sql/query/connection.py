"""A SQL session over Lance datasets in one engine."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from lance_engine.errors import DatasetNotFoundError, LanceError

from lance_sql.dataset import Dataset
from lance_sql.engines.base import Engine, Parameters, start
from lance_sql.query.catalog import Catalog
from lance_sql.query.explanation import Explanation
from lance_sql.query.result import QueryResult, Stream
from lance_sql.query.statement import Statement, parse


class Connection:
    """A session: views, settings and registered names live as long as it does. See `lance_sql.connect`.

    A statement sees the newest version of each dataset it names, found when the statement is planned. Only
    what a statement names is opened. ``_rowid`` and ``_rowaddr`` are columns of every dataset in a statement
    that names one of them (then also part of ``*``). Not for use by several threads at once.
    """

    def __init__(
        self,
        directory: str | None = None,
        engine: Any = "duckdb",
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._catalog = Catalog(directory, storage_options)
        self._engine: Engine = start(engine)
        #: name -> what the engine knows under it: the dataset, and the system columns it was declared with
        self._known: dict[str, tuple[Dataset, tuple[str, ...]]] = {}
        self._results: weakref.WeakSet[QueryResult] = weakref.WeakSet()
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        self._closed = False

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self._engine.name

    def sql(self, text: str, params: Parameters = None) -> QueryResult:
        """Plan one statement and return its result, which runs when it is first asked for rows.

        `params` replaces ``?`` and ``$1`` (a sequence) or ``$name`` (a mapping). Statements without rows,
        such as CREATE VIEW, run at once.
        """
        statement = self._prepare(text)
        try:
            query = self._engine.query(statement.text, params)
        except DatasetNotFoundError as error:
            raise self._with_table_names(error) from None
        result = QueryResult(query, lambda: self.explain(text, params), self._streams.add)
        self._results.add(result)
        return result

    def explain(self, text: str, params: Parameters = None) -> Explanation:
        """The engine's plan for `text`, and what it asks of each Lance dataset; nothing is executed."""
        statement = self._prepare(text)
        plan, scans = self._engine.explain(statement.text, params)
        return Explanation(self._engine.name, plan, tuple(scans))

    def register(self, name: str, data: Any) -> None:
        """Make `data` the table `name`: a dataset, the path of one (its newest version), or Arrow data."""
        self._check_open()
        self._settle(name)
        self._known.pop(name, None)
        if isinstance(data, Dataset | str | os.PathLike):
            self._catalog.register(name, data if isinstance(data, Dataset) else os.fspath(data))
        else:
            self._catalog.forget(name)
            self._engine.register_other(name, data)

    def tables(self) -> list[str]:
        """The names of the datasets in the directory."""
        return list(self._catalog.tables())

    def _prepare(self, text: str) -> Statement:
        """Read `text` and make the engine know what it names."""
        self._check_open()
        self._finish_streams()
        statement = parse(text)
        found = self._catalog.resolve(statement)
        for name in [reference.name for reference in statement.references if reference.name in self._known]:
            if name not in found:
                self._settle(name)
                self._engine.unregister(name)
                del self._known[name]
        for name, dataset in found.items():
            known, columns = self._known.get(name, (None, ()))
            if known is not dataset or columns != statement.system_columns:
                self._settle(name)
                self._engine.register(name, dataset, statement.system_columns)
                self._known[name] = (dataset, statement.system_columns)
        return statement

    def _settle(self, name: str) -> None:
        """Before `name` changes its meaning, run what was planned under the old one."""
        if name in self._known:
            for result in list(self._results):
                result.run()

    def _finish_streams(self) -> None:
        """Take the rest of open streams off an engine that runs one statement at a time."""
        if not self._engine.runs_statements_side_by_side:
            for stream in list(self._streams):
                stream.read_ahead()

    def _with_table_names(self, error: DatasetNotFoundError) -> LanceError:
        tables = self.tables()
        if tables:
            error.remedy = f"Tables here: {', '.join(tables)}"
        return error

    def _check_open(self) -> None:
        if self._closed:
            raise LanceError("the connection is closed", remedy="Open another with lance_sql.connect()")

    def close(self) -> None:
        """End the session. What was read of its results stays valid; unread results are lost."""
        if not self._closed:
            self._finish_streams()
            self._closed = True
            self._engine.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "" if self._catalog.directory is None else f" over {self._catalog.directory}"
        return f"<lance_sql.Connection {self.engine}{place}{' (closed)' if self._closed else ''}>"
