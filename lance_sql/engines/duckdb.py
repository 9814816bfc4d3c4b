"""Lance datasets in DuckDB.

DuckDB 2 scans Python objects through a small protocol, `duckdb._sources.ArrowScanSource`: the row count
reaches the optimiser, each conjunct of a filter is offered on its own, and batches arrive as an Arrow C
stream. The package is private to DuckDB, so its absence is no error: a dataset is then scanned through its
`pyarrow.dataset.Dataset` face, which DuckDB plans as one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa
from lance_engine.errors import InvalidFilterError, LanceError, UnsupportedFeatureError
from lance_engine.scan.system import ROW_NUMBERS

from lance_sql.engines.selectivity import estimated_share
from lance_sql.engines.table import EngineTable

if TYPE_CHECKING:
    from lance_engine.dataset import Dataset
    from lance_engine.expr.tree import Node

try:
    from duckdb._sources import ArrowScanSource
except ImportError:  # another DuckDB major
    ArrowScanSource = object
_HAS_SOURCES = ArrowScanSource is not object

Pushdown = Literal["auto", "all", "none"]

#: Eight of DuckDB's vectors: what a thread has decoded is still in its cache when another one reads it.
_BATCH_ROWS = 16_384
#: A predicate that at most this share of the rows passes is left to our scan ...
_SELECTIVE_SHARE = 1 / 32
#: ... of tables with at least so many rows: smaller ones are read in the time that a sample takes.
_MIN_ROWS_TO_SAMPLE = 1 << 18


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
        return self.table.stream()

    def rows(self) -> int:
        """Live rows; called once per planning, before any predicate is offered."""
        return self.table.num_rows

    def accepts(self, predicate: Any) -> bool:
        """Whether `stream` will apply `predicate` (a `duckdb._sources.nodes.Node`) as DuckDB would."""
        if self.pushdown == "none":
            return False
        from lance_engine.expr.from_duckdb import from_duckdb
        from lance_engine.expr.tree import columns_of

        try:
            tree = from_duckdb(predicate, self.table.filter_schema)
        except InvalidFilterError:
            return False
        columns = columns_of(tree)
        if not self.table.converted.isdisjoint(columns):
            return False
        return self.pushdown == "all" or columns <= ROW_NUMBERS or self._is_selective(tree)

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
        return self.table.stream(names, self._conjunction(filters) if filters else None), True

    def _conjunction(self, filters: Sequence[Any]) -> Node:
        from lance_engine.expr.build import conjunction
        from lance_engine.expr.from_duckdb import from_duckdb

        return conjunction([from_duckdb(predicate, self.table.filter_schema) for predicate in filters])


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
    connection: duckdb.DuckDBPyConnection,
    name: str,
    dataset: Dataset,
    *,
    pushdown: Pushdown = "auto",
    system_columns: Sequence[str] = (),
) -> DuckDBTable | None:
    """Make `dataset` the table `name` of `connection`, which other connections and cursors do not share.

    `system_columns`, such as ``_rowid``, become columns of the table. Returns what DuckDB scans, None where
    that is the dataset itself.
    """
    table = EngineTable(
        dataset,
        name,
        system_columns,
        declared_type,
        dictionaries=True,
        narrow_decimals=_HAS_SOURCES,
        batch_rows=_BATCH_ROWS,
    )
    scanned = _source(table, pushdown)
    connection.register(name, scanned)
    return scanned if isinstance(scanned, DuckDBTable) else None


def _source(table: EngineTable, pushdown: Pushdown) -> Any:
    if _HAS_SOURCES:
        return DuckDBTable(table, pushdown)
    if table.system_columns or table.converted:
        columns = ", ".join([*table.system_columns, *sorted(table.converted)])
        raise UnsupportedFeatureError(
            f"DuckDB {duckdb.__version__} cannot read the columns {columns}", remedy="Install duckdb 2.0"
        )
    return table.dataset
