"""DataFusion contexts behind the `Engine` interface."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import pyarrow as pa
from datafusion import SessionContext
from lance_engine.errors import ExternalAccessError, UnsupportedFeatureError

from lance_sql.catalog.access import UNRESTRICTED, Restrictions
from lance_sql.catalog.engine_names import EngineNames
from lance_sql.engines.added_columns import AddedColumns
from lance_sql.engines.alone import Alone
from lance_sql.engines.base import (
    EngineData,
    EnginePlan,
    Parameters,
    ScanReport,
    StatementCache,
)
from lance_sql.engines.datafusion.capabilities import CAPABILITIES
from lance_sql.engines.datafusion.materialize import (
    Planned,
    Side,
    check_budget,
    planned_with_counts,
    small_sides,
)
from lance_sql.engines.datafusion.panics import panics_as_errors
from lance_sql.engines.datafusion.planning import Planning
from lance_sql.engines.datafusion.plans import tree_of_lines
from lance_sql.engines.datafusion.settings import matching_names, nulls_are_last, session_config
from lance_sql.engines.datafusion.table import DataFusionTable, replace, replace_data
from lance_sql.engines.datafusion.unpushed import combines_null, explains_error
from lance_sql.engines.datafusion.versions import (
    DEFAULT_SCHEMA,
    residual_filters,
    target_partitions,
    without_scan_conditions,
)
from lance_sql.engines.interrupt import Interruptible
from lance_sql.engines.statement_run import Runs, StatementRun
from lance_sql.engines.table import EngineTable
from lance_sql.engines.table_session import TableSession
from lance_sql.errors import SqlError
from lance_sql.text.tokens import quote, spellings, tokenize

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.syntax.scopes import Names


T = TypeVar("T")


def start(context: SessionContext | None, materialize_bytes: int | None = None) -> DataFusionEngine:
    """The engine in a new session, or in an open one; see `materialize` for the bytes."""
    return DataFusionEngine(context, check_budget(materialize_bytes))


class DataFusionEngine(TableSession[DataFusionTable]):
    """A DataFusion session behind the `Engine` interface."""

    capabilities = CAPABILITIES

    #: DataFusion has threads of its own since its first session, which a process forked from this one lacks.
    _process: ClassVar[int | None] = None

    def __init__(self, context: SessionContext | None, materialize_bytes: int) -> None:
        super().__init__()
        process = DataFusionEngine._process = DataFusionEngine._process or os.getpid()
        if process != os.getpid():
            raise SqlError(
                "DataFusion was used before this process was forked, and its threads do not exist here",
                remedy="Start processes with multiprocessing.get_context('spawn'), or use DuckDB",
            )
        #: names of other data
        self._others: set[str] = set()
        self._restrictions = UNRESTRICTED
        self._is_new = context is None
        if context is None:
            # Parquet, CSV and JSON files can be used as tables by path, as in DuckDB.
            context = SessionContext(session_config()).enable_url_table()
        self.context = context
        #: the scans of plans, and the runs to which they belong
        self._planning = Planning()
        self._runs = Runs(side_by_side=True)
        self._partitions = target_partitions(context)
        self._materialize_bytes = materialize_bytes
        # DataFusion can only be stopped in its scans.
        self._call = Interruptible(lambda: None, patience=0.1)
        #: names are redefined while a statement is planned over tables in memory
        self.lock = Alone(waits=True)
        self.alone = nullcontext(True)

    def register(
        self,
        name: str,
        dataset: DatasetVersion,
        system_columns: Sequence[str],
        added: AddedColumns | None = None,
    ) -> None:
        known = EngineTable(dataset, name, system_columns, total_order=True, added=added)
        table = DataFusionTable(known, self._partitions, self._planning, self._runs)
        self._tables[name] = table
        self._others.discard(name)
        for spelling in spellings(name):
            replace(self.context, spelling, table)

    def unregister(self, name: str) -> None:
        self._tables.pop(name, None)
        self._others.discard(name)
        for spelling in spellings(name):
            self.context.deregister_table(quote(spelling))

    def register_other(self, name: str, data: Any) -> None:
        if isinstance(data, EngineData):
            data = data.within(None, self._runs)
        self._tables.pop(name, None)
        self._others.add(name)
        for spelling in spellings(name):
            replace_data(self.context, spelling, data)

    def names(self) -> list[str]:
        return sorted(self.context.catalog().schema().names())

    def describing(self, text: str) -> pa.Table:
        return self.context.sql(text).to_arrow_table()

    def databases(self) -> list[str]:
        return sorted(self.context.catalog_names())

    def matching_names(self) -> Names | None:
        return matching_names(self.context)

    def orders_descending(self) -> bool:
        return False

    def nulls_are_last(self, descending: bool) -> bool:
        return nulls_are_last(self.context, descending)

    def compares_bytes(self) -> bool:
        return True

    def restrictions(self) -> Restrictions:
        return self._restrictions

    @property
    def first_schema(self) -> tuple[str, str]:
        return DEFAULT_SCHEMA

    def own_names(self) -> EngineNames:
        registered = {spelling for name in (*self._tables, *self._others) for spelling in spellings(name)}
        return EngineNames(kinds={name: "table or view" for name in self.names() if name not in registered})

    def restrict(self, restrictions: Restrictions) -> None:
        self._restrictions = restrictions
        if self._is_new:
            self.context = SessionContext(session_config())  # which does not read files by path

    def replaces_aggregates(self) -> bool:
        return False

    @property
    def state(self) -> object | None:
        return None  # contexts of others have no sign of it

    def functions_are_standard(self) -> bool:
        return False  # those for JSON and maps can be registered

    def likes_are_standard(self) -> bool:
        return True  # LIKE is an operator; conditions for scans use no functions here

    def kinds(self, rows: pa.Table) -> Sequence[Any]:
        return ()

    def query(self, text: str, params: Parameters, cache: StatementCache | None = None) -> DataFusionQuery:
        known = dict(self._tables)

        def again(plan: Callable[[], Any]) -> Any:
            with self.lock:
                if any(self._tables.get(name) is not table for name, table in known.items()):
                    return None  # a name has been redefined since: only the plan has the old meaning
                return plan()

        def improved(planned: Planned) -> Any:
            return again(lambda: self._improved(text, params, lambda: planned))

        def tested_by_engine() -> Any:
            return again(lambda: self._unpushed(text, params))

        if not text.strip():
            return DataFusionQuery(self, None, improved, tested_by_engine)
        with self.running(self.begin()), self.lock:
            return DataFusionQuery(self, Planned(self._plan(text, params)), improved, tested_by_engine)

    def _plan(self, text: str, params: Parameters) -> Any:
        _refuse_positional_joins(text)
        if not self._restrictions.enable_external_access:
            _refuse_files(text)
        # Not on the main thread: DataFusion panics if a signal interrupts a Python call.
        run = self._runs.current or self.begin()
        try:
            return self.call(run, lambda: self.context.sql(text, param_values=_named(params)))
        except Exception as error:  # of statements that run when they are planned
            frame = self._unpushed(text, params) if combines_null(error) else None
            if frame is None:
                raise
            return frame

    def _unpushed(self, text: str, params: Parameters) -> Any:
        """The statement planned without conditions of scans; None if DataFusion cannot."""
        context = without_scan_conditions(self.context)
        if context is None:
            return None
        run = self._runs.current or self.begin()
        return self.call(run, lambda: context.sql(text, param_values=_named(params)))

    def _improved(
        self, text: str, params: Parameters, planned: Callable[[], Planned], prefix: str = ""
    ) -> Any:
        """The statement planned over tables that are read ahead, None if that does not help."""
        with self.lock:
            sides = self._small_sides(text, planned)
            return planned_with_counts(
                self.context, sides, text, lambda text: self._plan(text, params), prefix
            )

    def _small_sides(self, text: str, planned: Callable[[], Planned]) -> list[Side]:
        return small_sides(self._tables, self._planning, text, planned, self._materialize_bytes)

    def scans_of(self, planned: Planned) -> Mapping[str, int]:
        """How often a plan scans each Lance table, by name, including in views and subqueries."""
        names = {
            spelling: table.table.name for name, table in self._tables.items() for spelling in spellings(name)
        }
        return Counter(names[scanned] for scanned in planned.scans if scanned in names)

    def begin(self) -> StatementRun:
        self.lock.check_process()
        return StatementRun()

    def call(self, run: StatementRun, call: Callable[[], T]) -> T:
        """The result of `call`, which runs `run`; Ctrl-C stops it."""

        def of_run() -> T:
            with panics_as_errors(), self._runs.during(run):
                return call()

        return self._call(of_run, run.cancel)

    def elsewhere(self, run: StatementRun) -> AbstractContextManager[None]:
        """Streams that begin in the block belong to `run`: DataFusion 53 plans them on other threads."""
        return self._runs.elsewhere(run)

    @contextmanager
    def running(self, run: StatementRun) -> Iterator[None]:
        """Scans that DataFusion plans in the block belong to `run`; its errors are converted to ours."""
        try:
            with panics_as_errors(), self._runs.during(run):
                yield
        except Exception as error:
            raise self.translate(error, run) from None

    def explain(self, text: str, params: Parameters, run: StatementRun, *, analyze: bool) -> EnginePlan:
        with self.running(run):
            with self._planning.noted() as planned:
                plan = self._plan("EXPLAIN " + text, params).to_arrow_table()
                frame = self._unpushed("EXPLAIN " + text, params) if explains_error(plan) else None
                is_unpushed = frame is not None
                plan = frame.to_arrow_table() if frame is not None else plan
            residual = residual_filters(plan.column(1)[0].as_py())
            query = cache(lambda: Planned(self._plan(text, params)))
            with self.lock:
                sides = [] if is_unpushed else self._small_sides(text, query)
            ahead = {side.name for side in sides}
            if analyze:
                again = self._unpushed if is_unpushed else self._plan
                frame = None if is_unpushed else self._improved(text, params, query, "EXPLAIN ANALYZE ")
                plan = (frame or again("EXPLAIN ANALYZE " + text, params)).to_arrow_table()
        scans = []
        for name, table in self._tables.items():
            for columns, predicate in planned.get(table, ()):
                scanner = table.table.scan(columns, predicate, run=None).scanner
                scans.append(
                    ScanReport(
                        table.table.name,
                        table.table.dataset,
                        tuple(scanner.columns),
                        () if predicate is None else (str(predicate),),
                        residual.get(name, ()),
                        read_ahead=name in ahead,
                        scanner=scanner,
                    )
                )
        kinds, bodies = (column.to_pylist() for column in plan)
        parts = [f"{kind}\n{body}" for kind, body in zip(kinds, bodies, strict=True)]
        return EnginePlan(plan, "\n".join(parts), tree_of_lines(bodies[-1]), scans)

    def transact(self, statement: Literal["BEGIN", "COMMIT", "ROLLBACK"]) -> None:
        pass  # DataFusion's own tables change at once

    def check_transaction(self) -> None:
        pass

    def cursor(self) -> DataFusionEngine:
        engine = DataFusionEngine(self.context, self._materialize_bytes)
        engine._tables, engine._others, engine.lock = self._tables, self._others, self.lock
        engine._restrictions = self._restrictions
        engine._planning, engine._runs = self._planning, self._runs
        return engine

    def close(self) -> None:
        self._call.close()


def _refuse_positional_joins(text: str) -> None:
    """DataFusion parses POSITIONAL as an alias of the preceding table, and returns every pair of rows."""
    if "positional" not in text.lower():
        return
    words = [token.upper for token in tokenize(text)]
    if ("POSITIONAL", "JOIN") in itertools.pairwise(words):
        raise UnsupportedFeatureError(
            "DataFusion has no POSITIONAL JOIN",
            remedy="Use DuckDB: lance_sql.connect(engine='duckdb'), or join on row_number() OVER ()",
        )


def _refuse_files(text: str) -> None:
    """DataFusion has no setting that keeps statements from reading and writing files."""
    words = [token.upper for token in tokenize(text) if token.kind == "word"]
    if words and words[0] in ("COPY", "CREATE", "EXPLAIN", "PREPARE") and {"COPY", "EXTERNAL"} & set(words):
        raise ExternalAccessError(
            "This session reads and writes no other files, because enable_external_access is false",
            remedy="Register the table before, or use a session without enable_external_access=False",
        )


def _named(params: Parameters) -> dict[str, Any] | None:
    """Positional parameters under the names 1, 2 ... for ``$1``, ``$2``."""
    if params is None or isinstance(params, Mapping):
        return None if params is None else dict(params)
    return {str(position): value for position, value in enumerate(params, 1)}


class DataFusionQuery:
    """A planned query, None for a text without a statement.

    `improved` plans it again just before it runs, when the planner has more information, and `unpushed` if
    scans cannot have its conditions; None if they cannot.
    """

    def __init__(
        self,
        engine: DataFusionEngine,
        planned: Planned | None,
        improved: Callable[[Planned], Any],
        unpushed: Callable[[], Any],
    ) -> None:
        self._engine = engine
        self._planned = planned
        self._improved = improved
        self._unpushed = unpushed

    def schema(self) -> pa.Schema:
        return pa.schema([]) if self._planned is None else self._planned.frame.schema()

    def columns(self) -> list[tuple[str, str]]:
        return [(field.name, str(field.type)) for field in self.schema()]

    @property
    def scans(self) -> Mapping[str, int]:
        return {} if self._planned is None else self._engine.scans_of(self._planned)

    def to_table(self, run: StatementRun) -> pa.Table:
        planned = self._planned
        if planned is None:
            return pa.table({})
        with self._engine.running(run):
            return self._engine.call(
                run, lambda: self._executed(planned, run, lambda frame: frame.to_arrow_table())
            )

    def kinds(self) -> Sequence[Any]:
        return ()

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        # Not RecordBatchReader.from_stream: pyarrow frees the native stream without holding the GIL, and with
        # it Python objects of the scan. That crashes if garbage collection does it in a call from DataFusion.
        planned = self._planned
        if planned is None:
            return pa.schema([]), iter(())

        def begun(frame: Any) -> tuple[Any, Any]:
            with self._engine.elsewhere(run):
                return frame, frame.execute_stream()

        with self._engine.running(run):
            frame, batches = self._executed(planned, run, begun)
            return frame.schema(), self._batches(batches, run)

    def _batches(self, batches: Any, run: StatementRun) -> Iterator[pa.RecordBatch]:
        rows = iter(batches)
        try:
            while (batch := self._engine.call(run, lambda: next(rows, None))) is not None:
                yield batch.to_pyarrow()
        except Exception as error:
            raise self._engine.translate(error, run) from None

    def _executed(self, planned: Planned, run: StatementRun, execute: Callable[[Any], T]) -> T:
        """The result of `execute`, which plans the scans of a frame."""
        try:
            return execute(self._engine.call(run, lambda: self._ready(planned, run)))
        except Exception as error:
            frame = self._unpushed() if combines_null(error) else None
            if frame is None:
                raise
            return execute(frame)

    def _ready(self, planned: Planned, run: StatementRun) -> Any:
        run.has_one_scan = len(planned.scans) == 1
        improved = self._improved(planned)
        return planned.frame if improved is None else improved
