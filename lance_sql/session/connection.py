"""A SQL session over Lance datasets in one engine."""

from __future__ import annotations

import difflib
import functools
import itertools
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
from lance_engine.errors import LanceError
from lance_engine.owned import LiveObjects
from lance_engine.plan_picture import PlanPicture
from lance_engine.progress import ProgressOption

from lance_sql.catalog.attached import LISTED
from lance_sql.catalog.binding import Binding, Bound
from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.dataset import SqlDataset
from lance_sql.engines.base import Engine, Parameters, PlannedQuery, Query
from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.errors import point
from lance_sql.engines.start import start
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.searches.prepared import PreparedSearches
from lance_sql.searches.statement import Searches
from lance_sql.session.explanation import Explanation
from lance_sql.session.limited_queries import FirstRowsQuery, LimitedQuery, column_in_order, pays_to_limit
from lance_sql.session.metrics import scan_metrics
from lance_sql.session.result import QueryResult, Stream
from lance_sql.session.searching import PreparedQuery, SessionSearches
from lance_sql.session.struct_parts import PartTables
from lance_sql.session.transactions import SessionTransactions
from lance_sql.statements.dispatch import answer
from lance_sql.statements.outcome import Finished, done
from lance_sql.statements.session import LENT
from lance_sql.statements.whole_table import MetadataQuery, named_columns, whole_table_aggregates
from lance_sql.text.explained import explained_query
from lance_sql.text.limits import first_rows, limited
from lance_sql.text.script import split
from lance_sql.text.shown import ALL_TABLES, names_query, shown_within, with_shown
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_sql.engines.join_keys import JoinKeys
    from lance_sql.session.join_filters import JoinedQuery

#: Numbers the names of lent data: those of several threads may be in use at once.
_lent = itertools.count()


class Connection:
    """A session: views, settings and registered names live as long as it does. See `lance_sql.connect`.

    A statement sees the newest version of each dataset it names, found when the statement is planned. Only
    what a statement names is opened. ``_rowid`` and ``_rowaddr`` are columns of every dataset in a statement
    that names one of them (then also part of ``*``). Not for use by several threads at once:
    each takes a `cursor` of its own.
    """

    def __init__(
        self,
        directory: str | None = None,
        engine: Any = "duckdb",
        *,
        storage_options: Mapping[str, Any] | None = None,
        materialize_bytes: int | None = None,
    ) -> None:
        options = {} if materialize_bytes is None else {"materialize_bytes": materialize_bytes}
        self._set_up(Catalog(directory, storage_options), start(engine, **options))

    def _set_up(self, catalog: Catalog, engine: Engine, binding: Binding | None = None) -> None:
        self.catalog = catalog
        self._engine = engine
        self._binding = binding or Binding(
            engine,
            catalog,
            self._settle,
            numbers_parameters=engine.capabilities.numbers_parameters,
            listings={name: functools.partial(self.listing, name) for name in LISTED},
        )
        self._results: LiveObjects[QueryResult] = LiveObjects()
        self._streams: LiveObjects[Stream] = LiveObjects()
        #: what searches need of this session, and how they are answered
        self.searching = SessionSearches(self, engine)
        self._prepared_searches = PreparedSearches()
        #: tables of searches whose results are gone
        self._unused: list[str] = []
        self._closed = False
        self._beside: Connection | None = None
        #: whether what queries read counts when the transactions that follow are committed
        self.serializable = False
        #: datasets without the fields of structs that statements do not use
        self._parts = PartTables(engine)
        self._transactions = SessionTransactions(catalog, engine, self._run_planned, self._binding.forget_all)

    def cursor(self) -> Connection:
        """A connection to the same database for another thread, to be closed on its own.

        It shares tables and views, the directory, and what was registered so far.
        """
        self._check_open()
        cursor = object.__new__(type(self))
        shared = self._engine.capabilities.shares_names
        catalog = self.catalog if shared else self.catalog.copy()
        cursor._set_up(catalog, self._engine.cursor(), self._binding if shared else None)
        return cursor

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and has not ended yet."""
        return self.catalog.transaction is not None

    def begin(self) -> None:
        """Begin a transaction, as ``BEGIN`` does: what statements change takes effect with `commit`."""
        self._check_open()
        self._finish_streams()
        self._transactions.begin(serializable=self.serializable)

    def commit(self) -> None:
        """Commit the open transaction, each dataset that it changed as one version.

        CommitConflictError names the version of another writer that it conflicts with; nothing is left of
        the transaction then, but for datasets that it had committed before, which the error names.
        """
        self._check_open()
        self._transactions.commit()

    def rollback(self) -> None:
        """Undo the open transaction: nothing is left of its changes."""
        self._check_open()
        self._transactions.rollback()

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self.capabilities.name

    @property
    def capabilities(self) -> Capabilities:
        """What the engine can do."""
        return self._engine.capabilities

    def sql(self, text: str, params: Parameters = None, *, progress: ProgressOption = None) -> QueryResult:
        """Run the statements of `text`, which semicolons separate, and return the result of the last.

        A query is planned, and runs when its result is first asked for rows. Statements that change
        something run at once; those that change a dataset are one atomic commit each and answer with the
        number of rows concerned. `params` replaces ``?`` and ``$1`` (a sequence) or ``$name`` (a mapping), in
        the last statement. `progress` reports the rows read while a query runs: True prints them, a function
        gets a `lance_engine.progress.ProgressEvent` ten times a second, in another thread, and ends the
        statement by raising.
        """
        *before, last = split(text)
        for statement in before:
            for _ in self.execute(statement, progress=progress):
                pass  # a query may end in an error, or call a function that changes something
        return self.execute(last, params, progress=progress)

    def execute(
        self, statement: str | Statement, params: Parameters = None, *, progress: ProgressOption = None
    ) -> QueryResult:
        """The same as `sql`, which also takes one statement of a text that was split before."""
        if isinstance(statement, str):
            return self.sql(statement, params, progress=progress)
        self._check_open()
        self._finish_streams()
        with self._explained(statement):
            statement = self._prepared_searches.statement(statement)
            kept = self._prepared_searches.keeps(statement)
            rows = done() if kept else answer(self, statement, params)
        asked = explained_query(statement) if rows is None else None
        if asked is not None:
            with self._explained(statement):
                rows = self.explain(asked.query, params, analyze=asked.analyze).table()
        if rows is None:
            return self.select(statement, params, progress=progress)
        return self._result(Finished(rows), statement, params)

    def _result(
        self, query: Query, statement: Statement, params: Parameters, progress: ProgressOption = None
    ) -> QueryResult:
        explain = functools.partial(self.explain, statement, params)
        return QueryResult(query, self._engine, explain, self._streams.add, progress)

    def listing(self, name: str) -> pa.Table:
        """A table of information_schema with all datasets, or ``all_tables`` for ``SHOW ALL TABLES``."""
        from lance_sql.engines.duckdb.listing import Listing  # takes longer to import than a query

        with self._engine.lock:
            return Listing(self).table(name)

    def of_engine(self, text: str) -> pa.Table:
        """The rows of a query that concerns the engine only."""
        return self._engine.describing(text)

    def known_to_engine(self) -> set[str]:
        """The names under which the engine knows datasets and what describes them."""
        return self._binding.registered() | self._parts.names()

    def databases(self) -> list[str]:
        """The names of the databases of the engine."""
        with self._engine.lock:
            return self._engine.databases()

    def table_names(self) -> list[str]:
        """The names that a statement may use: of datasets, and of the engine's own tables and views."""
        with self._engine.lock:
            others = set(self._engine.names()) - self.known_to_engine()
        return sorted(others.union(self.catalog.names()))

    def select(
        self, text: str | Statement, params: Parameters = None, *, progress: ProgressOption = None
    ) -> QueryResult:
        """Plan one statement of the engine, such as a query, and return its result."""
        statement = Statement.of(text)
        if shown_within(statement):
            statement = with_shown(statement, names_query(self.table_names()), ALL_TABLES)
        with self._explained(statement):
            searches = Searches(self.searching, statement, params)
            if searches.runs_at_once:
                searches.prepare()
        plain = searches.plain() if self.capabilities.computes_statements else None
        if plain is not None:
            self._check_open()
            return self._result(plain, statement, params, progress)
        with self._explained(statement), self._engine.lock:
            bound = self._prepare(searches.statement, searches.tables)
            planned = self._engine.query(bound.text, searches.parameters)
            query: Query | None = self._from_metadata(
                searches.statement, bound, planned
            ) or self._of_first_rows(searches.statement, bound, planned)
            parts = None
            if query is None:
                parts = self._parts.instead(searches.statement, bound, lambda: planned, searches.parameters)
                chosen = planned if parts is None else parts.query
                query = (
                    self._of_any_rows(searches.statement, bound, chosen)
                    or self._of_joins(bound, chosen)
                    or chosen
                )
        if searches.tables:
            query = PreparedQuery(query, searches)
        result = self._result(query, statement, params, progress)
        self._results.add(result)
        if parts is not None:
            weakref.finalize(result, self._parts.release, parts.tables)
        if searches.tables and not searches.is_view:
            weakref.finalize(result, self._unused.extend, list(searches.tables))
        return result

    def _from_metadata(self, statement: Statement, bound: Bound, query: Query) -> MetadataQuery | None:
        """What answers `statement` without a scan, None if `query` has to."""
        aggregates = whole_table_aggregates(statement)
        if aggregates is None:
            return None
        tables = [reference for reference in statement.references if reference.certain]
        dataset = bound.datasets.get(tables[0].name) if len(tables) == 1 else None
        if dataset is None or tables[0].part:
            return None
        values = named_columns(aggregates, dataset, folds=self.capabilities.folds_names)
        return None if values is None else MetadataQuery(query, dataset, values)

    def _of_first_rows(self, statement: Statement, bound: Bound, query: Query) -> FirstRowsQuery | None:
        """What reads few rows where the first ones in the order of a column are wanted."""
        wanted = first_rows(statement)
        if wanted is None or bound.text != statement.original:
            return None
        name = next((reference.name for reference in statement.references if reference.certain), "")
        dataset = bound.datasets.get(name)
        field = None if dataset is None else column_in_order(dataset, wanted)
        if field is None:
            return None
        nulls_first = wanted.nulls_first
        if nulls_first is None:
            nulls_first = not self._engine.nulls_are_last(wanted.descending)
        last_key = self._engine.query(wanted.last_key(nulls_first), None)
        return FirstRowsQuery(query, last_key, name, field, wanted, nulls_first)

    def _of_any_rows(self, statement: Statement, bound: Bound, query: Query) -> LimitedQuery | None:
        """What reads few rows where any will do."""
        wanted = limited(statement)
        if wanted is None:
            return None
        name = next((reference.name for reference in statement.references if reference.certain), "")
        dataset = bound.datasets.get(name)
        if dataset is None or not pays_to_limit(dataset, wanted):
            return None
        return LimitedQuery(query, name, wanted)

    def _of_joins(self, bound: Bound, planned: PlannedQuery) -> JoinedQuery | None:
        """What lets the scans of a join give one another keys."""
        begin = self._join_keys(bound, lambda: planned.scans)
        if begin is None:
            return None
        from lance_sql.session.join_filters import JoinedQuery

        return JoinedQuery(planned, begin)

    def _join_keys(
        self, bound: Bound, scans: Callable[[], Mapping[str, int]]
    ) -> Callable[[], JoinKeys] | None:
        if len(bound.datasets) < 2:
            return None
        from lance_sql.session.join_filters import join_keys  # takes longer to import than a small query

        return join_keys(bound.text, bound.datasets, scans, self.capabilities.filters_joins)

    def computing(self) -> Connection:
        """A DuckDB session over the same datasets: this one, or a separate one."""
        if self.capabilities.computes_statements:
            return self
        if self._beside is None:
            self._beside = Connection(engine="duckdb")
            self._beside._set_up(self.catalog, self._beside._engine)
        return self._beside

    @contextmanager
    def lend(self, data: Any, system_columns: Sequence[str] = ()) -> Iterator[str]:
        """A name that means a dataset or Arrow data while the block runs."""
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

    @overload
    def explain(
        self,
        text: str | Statement,
        params: Parameters = None,
        *,
        analyze: bool = False,
        html: Literal[False] = False,
    ) -> Explanation: ...

    @overload
    def explain(
        self, text: str | Statement, params: Parameters = None, *, analyze: bool = False, html: Literal[True]
    ) -> PlanPicture: ...

    def explain(
        self,
        text: str | Statement,
        params: Parameters = None,
        *,
        analyze: bool = False,
        html: bool = False,
    ) -> Explanation | PlanPicture:
        """The engine's plan for `text`, and what it asks of each Lance dataset.

        Nothing is executed unless `analyze` asks for it: then the statement runs, and the explanation tells
        what every part of the plan did and what was read. With `html` the plan is a picture.
        """
        explanation = self._explanation(text, params, analyze)
        return explanation.picture() if html else explanation

    def _explanation(self, text: str | Statement, params: Parameters, analyze: bool) -> Explanation:
        searches = Searches(self.searching, Statement.of(text), params)
        statement, params = searches.statement, searches.parameters
        if analyze:
            searches.prepare()
        with self._engine.lock:
            bound = self._prepare(statement, searches.tables)
            self._unused.extend(searches.tables)
            if whole_table_aggregates(statement) is not None:
                known = self._from_metadata(statement, bound, self._engine.query(bound.text, params))
                if known is not None:
                    return Explanation(self.capabilities.name, str(known), ())
            run = self._engine.begin()
            # Not planned without need: that would run what is no query.
            planned = functools.cache(lambda: self._engine.query(bound.text, params))
            parts = self._parts.instead(statement, bound, planned, params)
            try:
                begin = self._join_keys(bound, lambda: (planned() if parts is None else parts.query).scans)
                run.join_keys = None if begin is None else begin()
                text = bound.text if parts is None else parts.text
                plan = self._engine.explain(text, params, run, analyze=analyze)
            finally:
                if parts is not None:
                    self._parts.release(parts.tables)
        return Explanation(
            self.capabilities.name,
            plan.text,
            tuple(plan.scans),
            tuple(scan_metrics(run.scans)) if analyze else (),
            tuple(searches.descriptions()),
            plan.trees,
            () if run.join_keys is None else tuple(run.join_keys.descriptions(analyze)),
            plan.rows,
        )

    def register(self, name: str, data: Any) -> None:
        """Make `data` the table `name`: a dataset, the path of one (its newest version), or Arrow data."""
        self._check_open()
        self._binding.forget(name)
        if isinstance(data, SqlDataset | str | os.PathLike):
            self.catalog.register(name, data if isinstance(data, SqlDataset) else os.fspath(data))
        else:
            self.catalog.forget(name)
            self._engine.register_other(name, data)

    def tables(self) -> list[str]:
        """The names of the datasets in the directory."""
        return list(self.catalog.tables())

    def _prepare(self, statement: Statement, searched: Mapping[str, Any] | None = None) -> Bound:
        """Make the engine know what `statement` names, and what its searches found."""
        self._check_open()
        self._finish_streams()
        while self._unused:
            self._engine.unregister(self._unused.pop())
        for name, table in (searched or {}).items():
            self._engine.register_other(name, table)
        return self._binding.bind(statement)

    def _settle(self) -> None:
        """Before a name changes its meaning, run what was planned under the old one."""
        if not self.capabilities.runs_statements_side_by_side:
            self._run_planned()

    def _run_planned(self) -> None:
        """Run the queries that were planned and not asked for rows yet."""
        self._finish_streams()
        for result in self._results:
            if not result.is_running:
                result.run()

    def _finish_streams(self) -> None:
        """Take the rest of open streams off an engine that runs one statement at a time."""
        if not self.capabilities.runs_statements_side_by_side:
            for stream in self._streams:
                stream.read_ahead()

    @contextmanager
    def _explained(self, statement: Statement) -> Iterator[None]:
        """Errors of `statement` with what helps its author: the place, the names that there are."""
        try:
            yield
        except TableNotFoundError as error:
            self._suggest_tables(error)
            raise
        except SqlError as error:
            point(error, statement.original)
            raise
        except RecursionError:
            raise SqlError(
                "the statement is nested too deeply",
                remedy="Use fewer parentheses, operators and types within one another",
            ) from None

    def _suggest_tables(self, error: TableNotFoundError) -> None:
        """Name the tables that there are, and the one that a missing one is probably meant to be."""
        known = self.catalog.names()
        if known:
            error.remedy = f"Available tables: {', '.join(known)}"
        paths = [entry for entry in os.listdir() if entry.endswith(".lance")]
        choices = {name.lower(): name for name in known} | {
            path.lower().removesuffix(".lance"): f"'{path}'" for path in paths
        }
        near = difflib.get_close_matches(error.name.lower(), choices, n=1)
        if near and not error.remedy.startswith("Did you mean"):  # a session beside this one may have said so
            error.remedy = f"Did you mean {choices[near[0]]}? {error.remedy}"

    def _check_open(self) -> None:
        if self._closed:
            raise LanceError("The connection is closed", remedy="Open a new one with lance_sql.connect()")

    def close(self) -> None:
        """End the session. What was read of its results stays valid; unread results are lost."""
        if not self._closed:
            self._finish_streams()
            if self._transactions.is_open:
                self.rollback()
            self._closed = True
            self._engine.close()
            if self._beside is not None:
                self._beside.close()

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
        place = "" if self.catalog.directory is None else f" over {self.catalog.directory}"
        return f"<lance_sql.Connection {self.engine}{place}{' (closed)' if self._closed else ''}>"
