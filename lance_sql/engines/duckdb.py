"""Lance datasets in DuckDB.

DuckDB 2 scans Python objects through a small protocol, `duckdb._sources.ArrowScanSource`: the row count
reaches the optimiser, each conjunct of a filter is offered on its own, and batches arrive as an Arrow C
stream. The package is private to DuckDB, so its absence is no error: a dataset is then scanned through its
`pyarrow.dataset.Dataset` face, which DuckDB plans as one row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa
from lance_engine.errors import InvalidFilterError, LanceError, UnsupportedFeatureError
from lance_engine.expr import Node, columns_of
from lance_engine.expr.build import conjunction
from lance_engine.expr.from_duckdb import from_duckdb

from lance_sql.engines.base import Parameters, ScanReport
from lance_sql.engines.errors import translated
from lance_sql.engines.selectivity import estimated_share
from lance_sql.engines.table import EngineTable
from lance_sql.query.statement import SYSTEM_COLUMNS, parse, versioned_name

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset

try:
    from duckdb._sources import ArrowScanSource
except ImportError:  # another DuckDB major
    ArrowScanSource = object

__all__ = ["DuckDBTable", "install", "register"]

Pushdown = Literal["auto", "all", "none"]

#: A predicate that at most this share of the rows passes is left to our scan ...
_SELECTIVE_SHARE = 1 / 32
#: ... of tables with at least so many rows: smaller ones are read in the time that a sample takes.
_MIN_ROWS_TO_SAMPLE = 1 << 18

_LANCE_SCAN = """CREATE OR REPLACE TEMP MACRO lance_scan(path) AS TABLE
SELECT * FROM query_table('"' || replace(path, '"', '""') || '"')"""


class DuckDBTable(ArrowScanSource):  # type: ignore[misc]
    """One dataset as a DuckDB scan source.

    An accepted predicate is ours alone: DuckDB does not apply it again, and plans with the unfiltered row
    count. So ``pushdown="auto"`` accepts what lets the scan skip most of the data: predicates over row ids
    and addresses, and in large local tables those that few rows of a sample pass. The rest stays with
    DuckDB's own vectorised filter. ``"all"`` and ``"none"`` are there for measuring.
    """

    #: the snapshot is immutable, so the schema is too
    schema_is_stable = True
    #: batches come from native threads
    pull_under_gil = False

    def __init__(self, table: EngineTable, pushdown: Pushdown = "auto") -> None:
        self.obj = self
        self.table = table
        self.pushdown = pushdown
        #: predicate -> the share of rows that pass it; a statement is planned more than once
        self._shares: dict[str, float] = {}

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.reader().__arrow_c_stream__(requested_schema)

    def rows(self) -> int:
        """Live rows; called once per planning, before any predicate is offered."""
        return self.table.num_rows

    def accepts(self, predicate: Any) -> bool:
        """Whether `stream` will apply `predicate` (a `duckdb._sources.nodes.Node`) as DuckDB would."""
        if self.pushdown == "none":
            return False
        try:
            tree = from_duckdb(predicate, self.table.schema)
        except InvalidFilterError:
            return False
        columns = columns_of(tree)
        if not self.table.converted.isdisjoint(columns):
            return False
        return self.pushdown == "all" or columns <= set(SYSTEM_COLUMNS) or self._is_selective(tree)

    def _is_selective(self, tree: Node) -> bool:
        """Whether few enough rows pass that reading the other columns for these alone wins."""
        if self.table.num_rows < _MIN_ROWS_TO_SAMPLE:
            return False
        text = str(tree)
        if text not in self._shares:
            try:
                share = estimated_share(self.table.dataset, tree)
            except (LanceError, OSError):  # the scan itself will meet and report it
                share = None
            self._shares[text] = 1.0 if share is None else share
        return self._shares[text] <= _SELECTIVE_SHARE

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """The Arrow stream of the declared `columns`, by index, that pass the accepted `filters`."""
        names = self.table.schema.names if columns is None else [self.table.schema.names[i] for i in columns]
        predicates = [from_duckdb(predicate, self.table.schema) for predicate in filters]
        filter = conjunction(predicates) if predicates else None
        return self.table.reader(names, filter).__arrow_c_stream__(), True


def declared_type(kind: pa.DataType) -> pa.DataType:
    """`kind`, or what DuckDB can read of it: one float16 or decimal256 column bars a whole table."""
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(kind.precision, kind.scale) if kind.precision <= 38 else pa.float64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(declared_type(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_declared_item(kind), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_declared_item(kind))
    if pa.types.is_list(kind):
        return pa.list_(_declared_item(kind))
    return kind


def _declared_item(kind: pa.DataType) -> pa.Field:
    return kind.value_field.with_type(declared_type(kind.value_field.type))


def register(
    connection: duckdb.DuckDBPyConnection, name: str, dataset: Dataset, *, pushdown: Pushdown = "auto"
) -> None:
    """Make `dataset` the table `name` of `connection`, which other connections and cursors do not share."""
    connection.register(
        name, _source(EngineTable(dataset, name, declare=declared_type, dictionaries=True), pushdown)
    )


def _source(table: EngineTable, pushdown: Pushdown = "auto") -> Any:
    if ArrowScanSource is not object:
        return DuckDBTable(table, pushdown)
    if table.system_columns or table.converted:
        columns = ", ".join([*table.system_columns, *sorted(table.converted)])
        raise UnsupportedFeatureError(
            f"DuckDB {duckdb.__version__} cannot read the columns {columns}", remedy="Install duckdb 2.0"
        )
    return table.dataset


def install(connection: duckdb.DuckDBPyConnection, *texts: str) -> None:
    """Add ``lance_scan('path')`` to `connection`, and the datasets that `texts` name by path.

    DuckDB has no hook for unknown names, so it must be told the paths: pass the statement, or any text that
    holds the quoted paths, before running it. `lance_sql.connect(engine=connection)` does so for every
    statement.
    """
    from lance_sql.api import open as open_dataset

    connection.execute(_LANCE_SCAN)
    for text in texts:
        for reference in parse(text).references:
            if reference.quoted and reference.location.endswith(".lance"):
                name = versioned_name(reference.location, reference.version)
                register(connection, name, open_dataset(reference.location, reference.version))


def start(connection: duckdb.DuckDBPyConnection | None) -> DuckDBEngine:
    """The engine in a new in-memory database, or in an open connection."""
    return DuckDBEngine(connection)


class DuckDBEngine:
    """A DuckDB connection behind the `Engine` interface."""

    name = "duckdb"
    runs_statements_side_by_side = False

    def __init__(self, connection: duckdb.DuckDBPyConnection | None) -> None:
        self._owned = connection is None
        # Python variables are no tables here: those in reach would be our own, not the caller's.
        self.connection = connection or duckdb.connect(config={"python_enable_replacements": "false"})
        self.connection.execute(_LANCE_SCAN)
        #: for explanations, the Lance tables this connection knows
        self._tables: dict[str, DuckDBTable] = {}

    def register(self, name: str, dataset: Dataset, system_columns: Sequence[str]) -> None:
        table = EngineTable(dataset, name, system_columns, declared_type, dictionaries=True)
        source = _source(table)
        self.connection.register(name, source)
        self._tables.pop(name, None)
        if isinstance(source, DuckDBTable):
            self._tables[name] = source

    def unregister(self, name: str) -> None:
        self.connection.unregister(name)
        self._tables.pop(name, None)

    def register_other(self, name: str, data: Any) -> None:
        self.connection.register(name, data)
        self._tables.pop(name, None)

    def query(self, text: str, params: Parameters) -> DuckDBQuery:
        try:
            return DuckDBQuery(self.connection.sql(text, params=params), self.translate)
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None

    def translate(self, error: Exception) -> LanceError:
        return translated(error, self.name, (source.table for source in self._tables.values()))

    def explain(self, text: str, params: Parameters) -> tuple[str, list[ScanReport]]:
        plan = self.query("EXPLAIN " + text, params).to_table()
        tree = self.query("EXPLAIN (FORMAT JSON) " + text, params).to_table()
        return str(plan.column(1)[0]), list(self._scans(json.loads(str(tree.column(1)[0]))))

    def _scans(self, plan: list[dict[str, Any]], residual: tuple[str, ...] = ()) -> Iterator[ScanReport]:
        """The Lance scans of a plan, whose parent filtered by `residual`."""
        for node in plan:
            details = node.get("extra_info", {})
            if "ARROW_SCAN" in str(details.get("Function", node["name"])).upper():
                yield from self._scan(details, residual)
            below = _as_tuple(details.get("Expression", ())) if node["name"] == "FILTER" else ()
            yield from self._scans(node.get("children", []), below)

    def _scan(self, details: dict[str, Any], residual: tuple[str, ...]) -> Iterator[ScanReport]:
        """DuckDB does not name the source of a scan: its columns and size tell."""
        columns = _as_tuple(details.get("Projections", ()))
        rows = str(details.get("Estimated Cardinality", ""))
        for name, source in self._tables.items():
            table = source.table
            if str(table.num_rows) == rows and set(columns) <= set(table.schema.names):
                yield ScanReport(
                    name, table.dataset, columns, _as_tuple(details.get("Filters", ())), residual
                )
                return

    def close(self) -> None:
        self._tables.clear()
        if self._owned:
            self.connection.close()


def _as_tuple(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class DuckDBQuery:
    """A relation, None for a text without a statement."""

    def __init__(
        self, relation: duckdb.DuckDBPyRelation | None, translate: Callable[[Exception], LanceError]
    ) -> None:
        self._relation = relation
        self.translate = translate

    def to_table(self) -> pa.Table:
        if self._relation is None:
            return pa.table({})
        try:
            return self._relation.to_arrow_table()
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        if self._relation is None:
            return pa.schema([]), iter(())
        try:
            reader = self._relation.to_arrow_reader()
        except (duckdb.Error, RuntimeError) as error:
            raise self.translate(error) from None
        return reader.schema, iter(reader)
