"""A SQL session over Lance datasets in one engine: what is behind a `Connection`."""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.base import LiveObjects, timed
from lance_engine.errors import InvalidArgumentError, LanceError

from lance_sql.catalog.access import UNRESTRICTED, Restrictions
from lance_sql.catalog.binding import Binding
from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.alone import Alone
from lance_sql.engines.base import Engine, Parameters, Query, check_parameters
from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.finished import Finished
from lance_sql.engines.start import start
from lance_sql.searches.statement import Searches
from lance_sql.session.hints import hints
from lance_sql.session.planner import Planner
from lance_sql.session.result import QueryResult, Stream, is_of, refuse_wide_integers, run_unless_running
from lance_sql.session.searching import SessionSearches
from lance_sql.text.metadata_tables import LISTINGS, SCHEMA_VIEWS
from lance_sql.text.script import statements
from lance_sql.text.shown import ALL_TABLES, names_query, shown_within, with_shown
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import spellings

if TYPE_CHECKING:
    from lance_engine.base import ProgressOption

    from lance_sql.pushdown_settings import Pushdowns
    from lance_sql.session.explanation import Explanation
    from lance_sql.session.transactions import SessionTransactions
    from lance_sql.statements.session import Rows

#: Numbers the names of temporary registrations: several threads may use them at once.
_lent = itertools.count()


class SqlSession:
    """A session: its engine, its names, and what its statements leave to the next ones."""

    def __init__(
        self,
        directory: str | None = None,
        engine: Any = "duckdb",
        *,
        storage_options: Mapping[str, Any] | None = None,
        materialize_bytes: int | None = None,
        restrictions: Restrictions = UNRESTRICTED,
    ) -> None:
        options = {} if materialize_bytes is None else {"materialize_bytes": materialize_bytes}
        started = start(engine, **options)
        if not restrictions.enable_external_access:
            started.restrict(restrictions)
        catalog = Catalog(directory, storage_options, started.restrictions, started.own_names)
        self._set_up(catalog, started)

    def _set_up(self, catalog: Catalog, engine: Engine, binding: Binding | None = None) -> None:
        self.catalog = catalog
        self._engine = engine
        self._binding = binding or self._new_binding(engine, catalog)
        #: held during a statement, including those that we execute, unless several may run at once
        self._alone: AbstractContextManager[bool] = (
            nullcontext(True) if engine.capabilities.runs_statements_side_by_side else Alone(waits=False)
        )
        self._results: LiveObjects[QueryResult] = LiveObjects()
        self._streams: LiveObjects[Stream] = LiveObjects()
        #: what searches need from this session, and their settings
        self.searching = SessionSearches(self, engine)
        #: Python variables that the last statement read
        self._variables: set[str] = set()
        self._closed = False
        self._beside: SqlSession | None = None
        #: whether only another session uses this one, whose statements nobody has written
        self._is_internal = False
        #: whether queries are checked for conflicts when transactions are committed
        self.serializable = False
        self._planner = Planner(engine, catalog, self._binding)

    def _new_binding(self, engine: Engine, catalog: Catalog) -> Binding:
        listed = LISTINGS if engine.capabilities.computes_statements else SCHEMA_VIEWS
        return Binding(
            engine,
            catalog,
            self._settle,
            numbers_parameters=engine.capabilities.numbers_parameters,
            listings={name: functools.partial(self.listing, name) for name in listed},
            sees_views=engine.state is not None or engine.capabilities.runs_statements_side_by_side,
        )

    def cursor(self) -> SqlSession:
        """A session over the same database for another thread."""
        self.forget_variables()
        self._check_open()
        cursor = object.__new__(type(self))
        shared = self._engine.capabilities.shares_names
        engine = self._engine.cursor()
        engine.pushdowns = self.pushdowns
        # Not with functions of this engine: this session may be closed first.
        catalog = self.catalog if shared else self.catalog.copy(engine.restrictions, engine.own_names)
        binding = self._binding if shared else cursor._new_binding(engine, catalog)
        if not shared:
            binding.in_views = self._binding.in_views
        cursor._set_up(catalog, engine, binding)
        return cursor

    @classmethod
    def without_views(cls) -> SqlSession:
        """A session for statements that create nothing."""
        session = cls()
        session._binding.may_have_views = False
        return session

    @cached_property
    def _transactions(self) -> SessionTransactions:
        from lance_sql.session.transactions import SessionTransactions

        settle, unsettle = self._run_planned, self._binding.unsettle
        return SessionTransactions(self.catalog, self._engine, settle, unsettle)

    @property
    def is_idle(self) -> bool:
        """Whether nobody holds a result or a stream of this session."""
        return not len(self._results) and not len(self._streams)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.catalog.transaction is not None

    def begin(self) -> None:
        """Begin a transaction: changes take effect with `commit`."""
        self._check_open()
        with self._alone:
            self._finish_streams()
            self._transactions.begin(serializable=self.serializable)

    def commit(self) -> None:
        """Commit the open transaction."""
        self._check_open()
        with self._alone:
            self._transactions.commit()

    def rollback(self) -> None:
        """Roll back the open transaction and discard its changes."""
        self._check_open()
        with self._alone:
            self._transactions.rollback()

    @property
    def pushdowns(self) -> Pushdowns:
        """Which pushdowns queries use."""
        return self._engine.pushdowns

    @pushdowns.setter
    def pushdowns(self, chosen: Pushdowns) -> None:
        self._engine.pushdowns = chosen

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self.capabilities.name

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the engine."""
        return self._engine.capabilities

    def sql(self, text: str, params: Parameters = None, *, progress: ProgressOption = None) -> QueryResult:
        """Run the statements of `text`, and return the result of the last."""
        *before, last = statements(text)
        for statement in before:
            for _ in self.execute(statement, progress=progress):
                pass  # a query may fail, or call a function that changes something
        return self.execute(last, params, progress=progress)

    def execute(
        self, statement: str | Statement, params: Parameters = None, *, progress: ProgressOption = None
    ) -> QueryResult:
        """Like `sql`, but also accepts a statement that has already been split from a script."""
        if isinstance(statement, str):
            return self.sql(statement, params, progress=progress)
        self._check_open()
        if params is not None:
            check_parameters(params)
        with self._alone:
            if self._is_internal:
                return self._executed(statement, params, progress)
            with timed("statement", engine=self.engine, text=statement.original):
                return self._executed(statement, params, progress)

    def _executed(self, statement: Statement, params: Parameters, progress: ProgressOption) -> QueryResult:
        self._finish_streams()
        with hints(statement, self.catalog):
            answered = self._answered(statement, params)
        if isinstance(answered, Statement):
            result = self._selected(answered, params, progress)
        elif isinstance(answered, QueryResult):  # RETURNING, which DuckDB computes
            result = self._result(answered._finished(), statement, params)
        else:
            return self._result(Finished(answered, self._engine.kinds(answered)), statement, params)
        refuse_wide_integers(result)
        return result

    def _answered(self, statement: Statement, params: Parameters) -> pa.Table | Rows | Statement:
        """The result of a statement, or the statement that the engine should run."""
        if statement.is_plain_query and self.capabilities.computes_statements:
            return statement
        from lance_sql.statements.answers import answer  # takes longer to import than a query

        return answer(self, statement, params)

    def _result(
        self, query: Query, statement: Statement, params: Parameters, progress: ProgressOption = None
    ) -> QueryResult:
        explain = functools.partial(self.explain, statement, params)
        return QueryResult(query, self._engine, explain, self._streams.add, progress)

    def listing(self, name: str) -> pa.Table:
        """What the engine lists under this name, such as ``information_schema.tables``, with all datasets."""
        from lance_sql.engines.duckdb.listing import Listing  # takes longer to import than a query

        with self._engine.lock:
            return Listing(self).table(name)

    def of_engine(self, text: str) -> pa.Table:
        """The rows of a query that only concerns the engine."""
        return self._engine.describing(text)

    def known_to_engine(self) -> set[str]:
        """The names under which datasets and their metadata are registered with the engine."""
        return {spelling for name in self._planner.names() for spelling in spellings(name)}

    def quotes_are_texts(self) -> bool:
        """Whether queries take what is in quotation marks for a text, in some dialects of DataFusion."""
        with self._engine.lock:
            return self._engine.matching_names() is None

    def databases(self) -> list[str]:
        """The names of the databases of the engine."""
        with self._engine.lock:
            return self._engine.databases()

    def first_schema(self) -> Sequence[str]:
        """The default database and schema of the engine when the session began."""
        return self._engine.first_schema

    def table_names(self) -> list[str]:
        """The names that a statement may use: datasets, and the engine's own tables and views."""
        with self._engine.lock:
            others = set(self._engine.names()) - self.known_to_engine() - self._variables
        return sorted(others.union(self.catalog.names()))

    def select(
        self, text: str | Statement, params: Parameters = None, *, progress: ProgressOption = None
    ) -> QueryResult:
        """Plan an engine statement, such as a query, and return its result."""
        return self._selected(Statement.of(text), params, progress)

    def _selected(
        self, statement: Statement, params: Parameters, progress: ProgressOption = None
    ) -> QueryResult:
        if shown_within(statement):
            statement = with_shown(statement, names_query(self.table_names()), ALL_TABLES)
        with hints(statement, self.catalog):
            searches = Searches(self.searching, statement, params)
            if searches.runs_at_once:
                searches.prepare()
        plain = searches.plain() if searches.tables and self.capabilities.computes_statements else None
        if plain is not None:
            self._check_open()
            return self._result(plain, statement, params, progress)
        with hints(statement, self.catalog), self._engine.lock:
            self._make_ready()
            query, released = self._planner.query(searches)
        result = self._result(query, statement, params, progress)
        self._results.add(result)
        for release in released:
            weakref.finalize(result, release)
        return result

    def computing(self) -> SqlSession:
        """A DuckDB session over the same datasets: this one, or a separate one."""
        if self.capabilities.computes_statements:
            return self
        if self._beside is None:
            self._beside = SqlSession(engine="duckdb", restrictions=self._engine.restrictions())
            self._beside._set_up(self.catalog, self._beside._engine)
            self._beside._is_internal = True
            self._beside.sql("SET TimeZone = 'UTC'")  # as in DataFusion
        return self._beside

    @contextmanager
    def lend(self, data: Any, system_columns: Sequence[str] = ()) -> Iterator[str]:
        """Register a dataset or Arrow data under a temporary name in this block."""
        from lance_sql.catalog.dataset import SqlDataset
        from lance_sql.statements.session import LENT

        name = f"{LENT}_{next(_lent)}"
        with self._engine.lock:
            if isinstance(data, SqlDataset):
                self._engine.register(name, data, system_columns)
            else:
                self._engine.register_other(name, data)
        try:
            yield name
        finally:
            with self._engine.lock:
                self._engine.unregister(name)

    def explain(
        self, text: str | Statement, params: Parameters = None, *, analyze: bool = False
    ) -> Explanation:
        """The engine's plan for `text`, which runs with `analyze`, and what it reads from each dataset."""
        check_parameters(params)
        self._check_open()
        searches = Searches(self.searching, Statement.of(text), params)
        if analyze:
            searches.prepare()
        with self._engine.lock:
            self._make_ready()
            return self._planner.explanation(searches, analyze=analyze)

    def register(self, name: str, data: Any) -> None:
        """Register `data` as the table `name`: a dataset, the path of one, or Arrow data."""
        self._check_open()
        with self._alone:
            self._register(name, data)

    def register_variable(self, name: str, data: Any) -> None:
        """Register the value of a Python variable, until `forget_variables`."""
        self.register(name, data)
        self._variables.add(name)

    def forget_variables(self) -> None:
        """Python variables have the values that they have when a statement begins."""
        if not self._variables:
            return
        self._check_open()
        with self._alone:
            self._finish_streams()
            for name in self._variables:
                self._binding.forget(name)
                self._settle()
                self.catalog.forget(name)
                self._engine.unregister(name)
            self._variables.clear()

    def _register(self, name: str, data: Any) -> None:
        from lance_sql.catalog.dataset import SqlDataset

        self._variables.discard(name)
        self._finish_streams()
        self._binding.forget(name)
        if isinstance(data, QueryResult) and is_of(data, self._engine):
            data = data.arrow()  # DuckDB cannot run it while it runs a statement that names it
        if isinstance(data, SqlDataset | str | os.PathLike):
            self.catalog.register(name, data if isinstance(data, SqlDataset) else os.fspath(data))
        elif data is None or isinstance(data, bool | int | float | bytes):
            raise InvalidArgumentError(
                f"Cannot register {type(data).__name__} as a table",
                remedy="Pass a dataset, the path of one, a data frame or an Arrow table",
            )
        else:
            self._engine.register_other(name, data)
            self.catalog.register_other(name)

    def tables(self) -> list[str]:
        """The names of the datasets in the directory."""
        return list(self.catalog.tables())

    def _make_ready(self) -> None:
        """Before a statement is planned."""
        self._check_open()
        self._finish_streams()

    def _settle(self) -> None:
        """Before a name is redefined, run the planned queries that use it."""
        if not self.capabilities.runs_statements_side_by_side:
            self._run_planned()

    def _run_planned(self) -> None:
        """Run the planned queries whose rows have not been read, and read open streams to the end."""
        for stream in self._streams:
            stream.read_ahead()
        for result in self._results:
            run_unless_running(result)

    def _finish_streams(self) -> None:
        """Read open streams to the end, for an engine that runs one statement at a time."""
        if not self.capabilities.runs_statements_side_by_side:
            for stream in self._streams:
                stream.read_ahead()

    def _check_open(self) -> None:
        if self._closed:
            raise LanceError("The connection is closed", remedy="Open a new one with lance_sql.connect()")
        self._engine.lock.check_process()

    def close(self) -> None:
        """Close the session. Rows that were read stay valid; unread results are lost."""
        if self._engine.lock.is_forked:
            self._closed = True  # the engine belongs to another process
        if not self._closed:
            self._finish_streams()
            if self.catalog.transaction is not None and self._transactions.is_open:
                self.rollback()
            self._closed = True
            self._engine.close()
            if self._beside is not None:
                self._beside.close()
