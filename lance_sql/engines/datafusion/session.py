"""DataFusion contexts behind the `Engine` interface."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from datafusion import SessionConfig, SessionContext
from lance_engine.errors import LanceError

from lance_sql.engines.base import Parameters, ScanReport
from lance_sql.engines.datafusion.capabilities import CAPABILITIES
from lance_sql.engines.datafusion.materialize import check_budget, planned_with_counts, small_sides
from lance_sql.engines.datafusion.table import DataFusionTable, as_dataset, replace, target_partitions
from lance_sql.engines.errors import translated
from lance_sql.engines.table import EngineTable, WatchedScan
from lance_sql.text.tokens import quote, spellings

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset


def start(context: SessionContext | None, materialize_bytes: int | None = None) -> DataFusionEngine:
    """The engine in a new session, or in an open one; see `materialize` for the bytes."""
    return DataFusionEngine(context, check_budget(materialize_bytes))


class DataFusionEngine:
    """A DataFusion session behind the `Engine` interface."""

    capabilities = CAPABILITIES

    def __init__(self, context: SessionContext | None, materialize_bytes: int) -> None:
        if context is None:
            # Parquet, CSV and JSON files are tables by their path, as in DuckDB.
            context = SessionContext(SessionConfig().with_information_schema(True)).enable_url_table()
        self.context = context
        self._tables: dict[str, DataFusionTable] = {}
        self._partitions = target_partitions(context)
        self._materialize_bytes = materialize_bytes
        #: names mean something else while a statement is planned over tables in memory
        self.lock = threading.RLock()

    def register(self, name: str, dataset: Dataset, system_columns: Sequence[str]) -> None:
        table = DataFusionTable(EngineTable(dataset, name, system_columns), self._partitions)
        self._tables[name] = table
        for spelling in spellings(name):
            replace(self.context, spelling, table)

    def unregister(self, name: str) -> None:
        self._tables.pop(name, None)
        for spelling in spellings(name):
            self.context.deregister_table(quote(spelling))

    def register_other(self, name: str, data: Any) -> None:
        self._tables.pop(name, None)
        for spelling in spellings(name):
            replace(self.context, spelling, as_dataset(data))

    def query(self, text: str, params: Parameters) -> DataFusionQuery:
        known = dict(self._tables)

        def improved() -> Any:
            with self.lock:
                if any(self._tables.get(name) is not table for name, table in known.items()):
                    return None  # a name means something else by now: only the plan knows what it meant
                return self._improved(text, params)

        if not text.strip():
            return DataFusionQuery(None, improved, self.translate)
        try:
            with self.lock:
                return DataFusionQuery(self._plan(text, params), improved, self.translate)
        except Exception as error:
            raise self.translate(error) from None

    def _plan(self, text: str, params: Parameters) -> Any:
        return self.context.sql(text, param_values=_named(params))

    def _improved(self, text: str, params: Parameters, prefix: str = "") -> Any:
        """The statement planned over tables that are read ahead, None where that does not help."""

        def plan(text: str) -> Any:
            return self._plan(text, params)

        with self.lock:
            sides = small_sides(self._tables, text, plan, self._materialize_bytes)
            return planned_with_counts(self.context, sides, text, plan, prefix)

    def watch(self) -> list[WatchedScan]:
        watched: list[WatchedScan] = []
        for table in self._tables.values():
            table.table.watched = watched
            table.table.cancelled = False
        return watched

    def cancel(self) -> None:
        for table in self._tables.values():
            table.table.cancelled = True

    def translate(self, error: Exception) -> LanceError:
        return translated(error, self.capabilities, (table.table for table in self._tables.values()))

    def explain(self, text: str, params: Parameters, analyze: bool) -> tuple[str, list[ScanReport]]:
        for table in self._tables.values():
            table.planned.clear()
        plan = self.query("EXPLAIN " + text, params).to_table()
        residual = _residual_filters(plan.column(1)[0].as_py())
        planned = {name: list(table.planned) for name, table in self._tables.items()}
        ahead = set()
        try:
            with self.lock:
                sides = small_sides(
                    self._tables, text, lambda text: self._plan(text, params), self._materialize_bytes
                )
                ahead = {side.name for side in sides}
            if analyze:
                frame = self._improved(text, params, "EXPLAIN ANALYZE ")
                plan = (frame or self._plan("EXPLAIN ANALYZE " + text, params)).to_arrow_table()
        except Exception as error:
            raise self.translate(error) from None
        scans = [
            ScanReport(
                name,
                self._tables[name].table.dataset,
                columns,
                () if predicate is None else (str(predicate),),
                residual.get(name, ()),
                read_ahead=name in ahead,
            )
            for name, found in planned.items()
            for columns, predicate in found
        ]
        parts = [
            f"{kind}\n{body}" for kind, body in zip(*(column.to_pylist() for column in plan), strict=True)
        ]
        return "\n".join(parts), scans

    def cursor(self) -> DataFusionEngine:
        engine = DataFusionEngine(self.context, self._materialize_bytes)
        engine._tables, engine.lock = self._tables, self.lock
        return engine

    def close(self) -> None:
        pass


_SCAN_BELOW_FILTER = re.compile(r"Filter: (?P<filter>.+)\n\s*TableScan: (?P<table>.+?) projection=")


def _residual_filters(logical_plan: str) -> dict[str, tuple[str, ...]]:
    """Table -> the filter right above its scan, read off the text of a logical plan."""
    return {found["table"]: (found["filter"],) for found in _SCAN_BELOW_FILTER.finditer(logical_plan)}


def _named(params: Parameters) -> dict[str, Any] | None:
    """Positional parameters under the names 1, 2 ... that ``$1``, ``$2`` ask for."""
    if params is None or isinstance(params, Mapping):
        return None if params is None else dict(params)
    return {str(position): value for position, value in enumerate(params, 1)}


class DataFusionQuery:
    """A planned DataFrame, None for a text without a statement.

    `improved` plans it again just before it runs, when the planner can be told more; None if it cannot.
    """

    def __init__(
        self, frame: Any, improved: Callable[[], Any], translate: Callable[[Exception], LanceError]
    ) -> None:
        self._frame = frame
        self._improved = improved
        self.translate = translate

    def schema(self) -> pa.Schema:
        return pa.schema([]) if self._frame is None else self._frame.schema()

    def to_table(self) -> pa.Table:
        if self._frame is None:
            return pa.table({})
        try:
            return self._ready().to_arrow_table()
        except Exception as error:
            raise self.translate(error) from None

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        # Not RecordBatchReader.from_stream: pyarrow frees the native stream without the GIL, and with it
        # Python objects of the scan. That crashes when garbage collection does it in a call from DataFusion.
        if self._frame is None:
            return pa.schema([]), iter(())
        try:
            frame = self._ready()
            batches = frame.execute_stream()
        except Exception as error:
            raise self.translate(error) from None
        return frame.schema(), (batch.to_pyarrow() for batch in batches)

    def _ready(self) -> Any:
        improved = self._improved()
        return self._frame if improved is None else improved
