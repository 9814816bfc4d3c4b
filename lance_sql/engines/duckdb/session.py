"""DuckDB connections behind the `Engine` interface."""

from __future__ import annotations

import weakref
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa
from lance_engine.errors import InvalidArgumentError, LanceError

from lance_sql.catalog.access import Restrictions
from lance_sql.catalog.engine_names import EngineNames
from lance_sql.engines.alone import Alone
from lance_sql.engines.base import (
    EnginePlan,
    Parameters,
    ScanReport,
    StatementCache,
)
from lance_sql.engines.duckdb.capabilities import CAPABILITIES
from lance_sql.engines.duckdb.opening import opening
from lance_sql.engines.duckdb.own_names import UNINSTALL, OwnNames
from lance_sql.engines.duckdb.planning import Planned, Planning, expected_rows, may_expect_fewer
from lance_sql.engines.duckdb.result_types import ResultTypes
from lance_sql.engines.duckdb.settings import Changes, Settings
from lance_sql.engines.duckdb.versions import Step, sql, steps
from lance_sql.engines.interrupt import Interruptible
from lance_sql.engines.statement_run import Runs, StatementRun
from lance_sql.engines.table_session import TableSession
from lance_sql.pushdown_settings import NO_PUSHDOWNS
from lance_sql.types.exact import exact_columns
from lance_sql.types.sources import stored_relation

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.added_columns import AddedColumns
    from lance_sql.engines.duckdb.table import DuckDBTable
    from lance_sql.syntax.scopes import Names


def start(connection: duckdb.DuckDBPyConnection | None, **options: Any) -> DuckDBEngine:
    """The engine in a new in-memory database, or in an open connection; it takes no `options`."""
    if options:
        raise LanceError(
            f"DuckDB has no option {', '.join(options)}", remedy="Its settings: SET memory_limit = '1GB'"
        )
    return DuckDBEngine(connection)


class DuckDBEngine(TableSession["DuckDBTable"]):
    """A DuckDB connection behind the `Engine` interface."""

    capabilities = CAPABILITIES

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection | None,
        owned: bool | None = None,
        changes: Changes | None = None,
    ) -> None:
        super().__init__()
        if connection is not None and (uninstall := UNINSTALL.get(connection)) is not None:
            uninstall()
        self._owned = connection is None if owned is None else owned
        self._is_new = connection is None
        self._opened = opening() if connection is None else lambda: connection
        #: the names of datasets; `_tables` has those that this version of DuckDB scans as tables of ours
        self._datasets: dict[str, None] = {}
        #: other data by name
        self._others: dict[str, Any] = {}
        self._in_transaction = False
        #: names to unregister at the end of the transaction
        self._left: list[str] = []
        #: what its plans request from tables, and the row counts that they expect
        this = weakref.ref(self)  # DuckDB holds registered tables, in which nothing finds cycles
        self._planning = Planning(lambda: NO_PUSHDOWNS if (engine := this()) is None else engine.pushdowns)
        self._runs = Runs()
        self._changes = changes or Changes(own=connection is None)
        self._settings = Settings(self._opened, self._changes)
        self._own_names = OwnNames(self._opened, self._changes, ChainMap(self._datasets, self._others).keys)
        self.result_types = ResultTypes(self._changes)
        #: runs calls of DuckDB so that Ctrl-C can interrupt them
        opened = self._opened
        self.call = Interruptible(lambda: opened().interrupt())
        self.lock = self.alone = Alone(waits=False)

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection; waits until a new database is ready."""
        return self._opened()

    def register(
        self,
        name: str,
        dataset: DatasetVersion,
        system_columns: Sequence[str],
        added: AddedColumns | None = None,
    ) -> None:
        from lance_sql.engines.duckdb.table import DuckDBTable, register_data, source

        scanned = source(dataset, name, system_columns, planning=self._planning, runs=self._runs, added=added)
        with self.running(self.begin()):
            register_data(self.connection, name, scanned)
        self._tables.pop(name, None)
        self._others.pop(name, None)
        self._datasets[name] = None
        if isinstance(scanned, DuckDBTable):
            self._tables[name] = scanned

    def unregister(self, name: str) -> None:
        try:
            self.connection.unregister(name)
        except (duckdb.TransactionException, duckdb.FatalException):  # only rolling back, or closing, is left
            self._left.append(name)
        if self._in_transaction:  # a ROLLBACK would bring it back
            self._left.append(name)
        self._tables.pop(name, None)
        self._datasets.pop(name, None)
        self._others.pop(name, None)

    def register_other(self, name: str, data: Any) -> None:
        from lance_sql.engines.duckdb.table import register_data

        with self.running(self.begin()):
            register_data(self.connection, name, data, self._runs)
        self._tables.pop(name, None)
        self._datasets.pop(name, None)
        self._others[name] = data

    def names(self) -> list[str]:
        names: list[str] = self.describing("SHOW TABLES")["name"].to_pylist()
        return names

    def describing(self, text: str) -> pa.Table:
        with self.running(self.begin()):
            return self._table(text, None)

    def databases(self) -> list[str]:
        databases: list[str] = self.describing("SHOW DATABASES")["database_name"].to_pylist()
        return databases

    def matching_names(self) -> Names:
        return "any case"

    def orders_descending(self) -> bool:
        return self._settings.orders_descending()

    def nulls_are_last(self, descending: bool) -> bool:
        return self._settings.nulls_are_last(descending)

    def compares_bytes(self) -> bool:
        return self._settings.compares_bytes()

    def restrictions(self) -> Restrictions:
        return self._settings.restrictions()

    @property
    def first_schema(self) -> tuple[str, str]:
        return self._own_names.first

    def own_names(self) -> EngineNames:
        return self._own_names()

    def restrict(self, restrictions: Restrictions) -> None:
        if not self._is_new:
            raise InvalidArgumentError(
                "The restrictions of an open connection are its own settings",
                remedy="Run SET allowed_directories = [...] and SET enable_external_access = false on it",
            )
        with self._changes.during("SET"):
            directories = list(restrictions.allowed_directories)
            self.connection.execute("SET allowed_directories = ?", [directories])
            self.connection.execute("SET enable_external_access = false")

    def replaces_aggregates(self) -> bool:
        return self._settings.replaces_aggregates()

    @property
    def state(self) -> object | None:
        return self._changes.state

    def functions_are_standard(self) -> bool:
        return self._settings.functions_are_standard()

    def likes_are_standard(self) -> bool:
        return self.functions_are_standard()

    def query(self, text: str, params: Parameters, cache: StatementCache | None = None) -> DuckDBQuery:
        def expected() -> dict[DuckDBTable, int]:
            return self._expected(planned, text, params, cache)

        with self._changes.during(text), self.running(self.begin()), self._planning.noted() as planned:
            if self._in_transaction:  # a typing error would abort it
                self.connection.extract_statements(text)
            relation = self.call(lambda: sql(self.connection, text, params))
        scans: Counter[str] = Counter()
        for scanned, noted in planned.items():
            scans[scanned.table.name] += noted.scans
        return DuckDBQuery(self, relation, expected, scans)

    def kinds(self, rows: pa.Table) -> Sequence[Any]:
        if not any(map(pa.types.is_nested, rows.schema.types)):
            return ()
        with self.running(self.begin()):
            return list(self.connection.from_arrow(rows.schema.empty_table()).types)

    def _expected(
        self,
        planned: Mapping[DuckDBTable, Planned],
        text: str,
        params: Parameters,
        cache: StatementCache | None,
    ) -> dict[DuckDBTable, int]:
        """The row counts with which a query over some tables should be executed."""
        if not may_expect_fewer(planned):
            return {}
        run = self._runs.current
        key = (text, repr(params), run is not None and run.join_keys is not None)
        known = None if cache is None else cache.get(key)
        if known is not None:  # by name: the tables may have been registered again
            return {table: known[table.table.name] for table in planned if table.table.name in known}
        try:
            with self._planning.noted() as explained:
                self._table("EXPLAIN " + text, params)
            rows = expected_rows(explained)
        except duckdb.Error:  # not a statement that can be explained
            rows = {}
        if cache is not None:
            cache[key] = {table.table.name: count for table, count in rows.items()}
        return rows

    def _table(self, text: str, params: Parameters) -> pa.Table:
        return self.call(lambda: sql(self.connection, text, params).to_arrow_table())

    def begin(self) -> StatementRun:
        return StatementRun(self.connection.interrupt)

    @contextmanager
    def running(
        self, run: StatementRun, expected: Callable[[], Mapping[DuckDBTable, int]] = dict
    ) -> Iterator[None]:
        """Scans of DuckDB in the block belong to `run`, and are planned with the row counts `expected`.

        Its errors are converted to ours. DuckDB does not say to which statement a scan belongs, so a second
        thread is refused.
        """
        try:
            with self.alone, self._runs.during(run), self._planning.expecting(expected()):
                yield
        except (
            duckdb.Error,
            RuntimeError,
            pa.ArrowInvalid,  # Arrow limits the nesting of types
            UnicodeDecodeError,  # the message of an error quotes a value
        ) as error:
            raise self.translate(error, run) from None

    def explain(self, text: str, params: Parameters, run: StatementRun, *, analyze: bool) -> EnginePlan:
        from lance_sql.engines.duckdb.plans import tree_of_steps

        with self._changes.during(text), self.running(run):
            with self._planning.noted() as planned:
                self._table("EXPLAIN " + text, params)
            with self._planning.expecting(expected_rows(planned)):
                plan = self._table(("EXPLAIN ANALYZE " if analyze else "EXPLAIN ") + text, params)
                with self._planning.noted() as planned:
                    described = self._table("EXPLAIN (FORMAT JSON) " + text, params)
                tree = steps(str(described.column(1)[0]))
                scans = list(self._scans(tree, planned))
                return EnginePlan(plan, str(plan.column(1)[0]), tree_of_steps(tree), scans)

    def _scans(
        self,
        plan: Sequence[Step],
        planned: Mapping[DuckDBTable, Planned],
        residual: tuple[str, ...] = (),
    ) -> Iterator[ScanReport]:
        """The Lance scans of a plan, whose parent filtered by `residual`."""
        for step in plan:
            if step.is_scan:
                yield from self._scan(step, planned, residual)
            yield from self._scans(step.children, planned, step.conditions)

    def _scan(
        self,
        step: Step,
        planned: Mapping[DuckDBTable, Planned],
        residual: tuple[str, ...],
    ) -> Iterator[ScanReport]:
        """DuckDB does not name the source of a scan: it is identified by its columns and size."""
        for scanned, noted in planned.items():
            table = scanned.table
            columns = _columns(step.columns, table.schema.names)
            if str(scanned.rows()) == step.rows and columns is not None:
                decisions = tuple(dict.fromkeys(noted.decisions))
                scanner = scanned.described(columns, decisions)
                yield ScanReport(
                    table.name,
                    table.dataset,
                    tuple(scanner.columns),
                    step.filters,
                    residual,
                    decisions,
                    scanner=scanner,
                    coded=table.coded_columns,
                )
                return

    def transact(self, statement: Literal["BEGIN", "COMMIT", "ROLLBACK"]) -> None:
        with self._changes.during(statement), self.running(self.begin()):
            self.connection.execute(statement)
        self._in_transaction = statement == "BEGIN"
        while self._left:
            name = self._left.pop()
            if name not in self._datasets and name not in self._others:
                self.connection.unregister(name)

    def check_transaction(self) -> None:
        with self.running(self.begin()):
            self.connection.execute("SELECT 1").fetchall()

    def cursor(self) -> DuckDBEngine:
        engine = DuckDBEngine(self.connection.cursor(), owned=True, changes=self._changes)
        for name, data in self._others.items():
            engine.register_other(name, data)
        return engine

    def close(self) -> None:
        self._tables.clear()
        self.call.close()
        if self._owned:
            self.connection.close()
            return
        # On the user's connection, another session would take such names for views of the user. Views that
        # were created here read datasets by their full names.
        for name in (*self._datasets, *self._others):
            if "." not in name:
                with suppress(duckdb.Error):
                    self.connection.unregister(name)


def _columns(projected: Sequence[str], names: Sequence[str]) -> list[str] | None:
    """The columns of a table that a plan reads, completely or by field; None if others are among them."""
    columns: dict[str, None] = {}
    for text in projected:
        if text not in names:
            text = max((name for name in names if text.startswith(f"{name}.")), key=len, default="")
        if not text:
            return None
        columns[text] = None
    return list(columns)


class DuckDBQuery:
    """A relation, None for a text without a statement.

    `expected` are the row counts with which to plan the statement, `scans` how often it scans tables.
    """

    def __init__(
        self,
        engine: DuckDBEngine,
        relation: duckdb.DuckDBPyRelation | None,
        expected: Callable[[], dict[DuckDBTable, int]],
        scans: Mapping[str, int],
    ) -> None:
        self._engine = engine
        self._relation = relation
        self._expected = expected
        self.scans = scans

    def schema(self) -> pa.Schema:
        relation = self._relation
        if relation is None:
            return pa.schema([])
        with self._engine.running(self._engine.begin()):
            return self._engine.result_types.schema(
                relation, lambda: self._engine.call(relation.limit(0).to_arrow_table).schema
            )

    def columns(self) -> list[tuple[str, str]]:
        relation = self._relation
        return [] if relation is None else list(zip(relation.columns, map(str, relation.types), strict=True))

    def to_table(self, run: StatementRun) -> pa.Table:
        if self._relation is None:
            return pa.table({})
        with self._engine.running(run, self._expected):
            exact = exact_columns(self._relation.types)
            relation = self._relation if exact is None else self._relation.project(exact)
            rows = self._engine.call(relation.to_arrow_table)
            return rows if exact is None else rows.rename_columns(self._relation.columns)

    def kinds(self) -> Sequence[Any]:
        return () if self._relation is None else list(self._relation.types)

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self._relation is None:
            return pa.schema([]), iter(())
        with self._engine.running(run, self._expected):
            relation = stored_relation(self._relation)[0] if run.wants_stored else self._relation
            reader = self._engine.call(relation.arrow)
        run.has_stored = run.wants_stored
        return reader.schema, self._batches(reader, run)

    def _batches(self, reader: pa.RecordBatchReader, run: StatementRun) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                with self._engine.running(run):
                    batch = self._engine.call(lambda: next(reader, None))
            except Exception as error:  # a pyarrow error with the text of DuckDB's or ours
                raise self._engine.translate(error, run) from None
            if batch is None:
                return
            yield batch
