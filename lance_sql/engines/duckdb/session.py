"""DuckDB connections behind the `Engine` interface."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.engines.base import Parameters, ScanReport
from lance_sql.engines.duckdb.capabilities import CAPABILITIES
from lance_sql.engines.duckdb.expected_rows import expected_rows, expecting, may_expect_fewer, planning
from lance_sql.engines.duckdb.interrupt import Interruptible
from lance_sql.engines.duckdb.table import DuckDBTable, Planned, register
from lance_sql.engines.errors import translated
from lance_sql.engines.table import WatchedScan

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset


#: Statements of which it is kept what their scans leave, so that they are planned once when they run again.
_KEPT_COUNTS = 64


def start(connection: duckdb.DuckDBPyConnection | None, **options: Any) -> DuckDBEngine:
    """The engine in a new in-memory database, or in an open connection; it takes no `options`."""
    if options:
        raise LanceError(
            f"DuckDB has no option {', '.join(options)}", remedy="Its settings: SET memory_limit = '1GB'"
        )
    return DuckDBEngine(connection)


class DuckDBEngine:
    """A DuckDB connection behind the `Engine` interface."""

    capabilities = CAPABILITIES

    def __init__(self, connection: duckdb.DuckDBPyConnection | None, owned: bool | None = None) -> None:
        self._owned = connection is None if owned is None else owned
        # Python variables are no tables here: those in reach would be our own, not the caller's.
        self.connection = connection or duckdb.connect(config={"python_enable_replacements": "false"})
        #: for explanations, the Lance tables this connection knows
        self._tables: dict[str, DuckDBTable] = {}
        #: statement and parameters -> the tables of a join, and the rows that its scans leave of them
        self._counted: dict[tuple[str, str], tuple[set[DuckDBTable], dict[DuckDBTable, int]]] = {}
        #: data of other kinds by name
        self._others: dict[str, Any] = {}
        self._call = Interruptible(self.connection.interrupt)
        self.lock = threading.RLock()

    def register(self, name: str, dataset: Dataset, system_columns: Sequence[str]) -> None:
        self._counted.clear()
        self._tables.pop(name, None)
        self._others.pop(name, None)
        table = register(self.connection, name, dataset, system_columns=system_columns)
        if table is not None:
            self._tables[name] = table

    def unregister(self, name: str) -> None:
        self._counted.clear()
        self.connection.unregister(name)
        self._tables.pop(name, None)
        self._others.pop(name, None)

    def register_other(self, name: str, data: Any) -> None:
        self.connection.register(name, data)
        self._tables.pop(name, None)
        self._others[name] = data

    def query(self, text: str, params: Parameters) -> DuckDBQuery:
        def expected() -> dict[DuckDBTable, int]:
            return self._expected(planned, text, params)

        try:
            with planning(self._tables.values()) as planned:
                relation = self._call(lambda: self.connection.sql(text, params=params))
            return DuckDBQuery(relation, self._call, self.translate, expected)
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None

    def _expected(
        self, planned: Mapping[DuckDBTable, Planned], text: str, params: Parameters
    ) -> dict[DuckDBTable, int]:
        """How many rows a query, planned over some tables, should be executed with."""
        if not may_expect_fewer(planned):
            return {}
        key = (text, repr(params))
        known = self._counted.get(key)
        if known is not None and known[0] == set(planned):
            return known[1]
        try:
            with planning(planned) as explained:
                self._table("EXPLAIN " + text, params)
            rows = expected_rows(explained)
        except duckdb.Error:  # not a statement that can be explained
            rows = {}
        if len(self._counted) >= _KEPT_COUNTS:
            self._counted.clear()
        self._counted[key] = (set(planned), rows)
        return rows

    def _table(self, text: str, params: Parameters) -> pa.Table:
        return self._call(lambda: self.connection.sql(text, params=params).to_arrow_table())

    def translate(self, error: Exception) -> LanceError:
        return translated(error, self.capabilities, (source.table for source in self._tables.values()))

    def watch(self) -> list[WatchedScan]:
        watched: list[WatchedScan] = []
        for source in self._tables.values():
            source.table.watched = watched
        return watched

    def cancel(self) -> None:
        self.connection.interrupt()

    def explain(self, text: str, params: Parameters, analyze: bool) -> tuple[str, list[ScanReport]]:
        try:
            with planning(self._tables.values()) as planned:
                self._table("EXPLAIN " + text, params)
            with expecting(expected_rows(planned)):
                plan = self._table(("EXPLAIN ANALYZE " if analyze else "EXPLAIN ") + text, params)
                with planning(self._tables.values()) as planned:
                    tree = self._table("EXPLAIN (FORMAT JSON) " + text, params)
                return str(plan.column(1)[0]), list(self._scans(json.loads(str(tree.column(1)[0])), planned))
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None

    def _scans(
        self,
        plan: list[dict[str, Any]],
        planned: Mapping[DuckDBTable, Planned],
        residual: tuple[str, ...] = (),
    ) -> Iterator[ScanReport]:
        """The Lance scans of a plan, whose parent filtered by `residual`."""
        for node in plan:
            details = node.get("extra_info", {})
            if "ARROW_SCAN" in str(details.get("Function", node["name"])).upper():
                yield from self._scan(details, planned, residual)
            below = _as_tuple(details.get("Expression", ())) if node["name"] == "FILTER" else ()
            yield from self._scans(node.get("children", []), planned, below)

    def _scan(
        self,
        details: dict[str, Any],
        planned: Mapping[DuckDBTable, Planned],
        residual: tuple[str, ...],
    ) -> Iterator[ScanReport]:
        """DuckDB does not name the source of a scan: its columns and size tell."""
        columns = _as_tuple(details.get("Projections", ()))
        rows = str(details.get("Estimated Cardinality", ""))
        for source, noted in planned.items():
            table = source.table
            if str(source.rows()) == rows and set(columns) <= set(table.schema.names):
                yield ScanReport(
                    table.name,
                    table.dataset,
                    columns,
                    _as_tuple(details.get("Filters", ())),
                    residual,
                    tuple(dict.fromkeys(noted.decisions)),
                )
                return

    def cursor(self) -> DuckDBEngine:
        engine = DuckDBEngine(self.connection.cursor(), owned=True)
        for name, data in self._others.items():
            engine.register_other(name, data)
        return engine

    def close(self) -> None:
        self._counted.clear()
        self._tables.clear()
        self._call.close()
        if self._owned:
            self.connection.close()


def _as_tuple(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class DuckDBQuery:
    """A relation, None for a text without a statement."""

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation | None,
        call: Interruptible,
        translate: Callable[[Exception], LanceError],
        expected: Callable[[], dict[DuckDBTable, int]],
    ) -> None:
        self._relation = relation
        self._call = call
        self.translate = translate
        #: the row counts that the statement should be planned with
        self._expected = expected

    def schema(self) -> pa.Schema:
        if self._relation is None:
            return pa.schema([])
        return self._call(self._relation.limit(0).to_arrow_table).schema

    def to_table(self) -> pa.Table:
        if self._relation is None:
            return pa.table({})
        try:
            with expecting(self._expected()):
                return self._call(self._relation.to_arrow_table)
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self._relation is None:
            return pa.schema([]), iter(())
        try:
            with expecting(self._expected()):
                reader = self._call(self._relation.to_arrow_reader)
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None
        return reader.schema, iter(lambda: self._call(lambda: next(reader, None)), None)
