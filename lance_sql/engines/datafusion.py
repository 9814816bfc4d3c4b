"""Lance datasets in DataFusion.

DataFusion scans any `pyarrow.dataset.Dataset` subclass: it asks the dataset for fragments, one partition
each, and each fragment for a scanner. Here the fragments are row ranges of about equal size, so that one
large file is still read in parallel. Every filter that DataFusion can say as a pyarrow expression is handed
over and not applied again. There is no native plug-in, so the DataFusion major version does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion import SessionConfig, SessionContext, Table, udtf
from datafusion.catalog import SchemaProvider
from lance_engine.errors import LanceError

from lance_sql.engines.base import Parameters, ScanReport
from lance_sql.engines.errors import translated
from lance_sql.engines.partitions import Partition, TableScanner, partitions
from lance_sql.engines.table import EngineTable
from lance_sql.query.statement import quote

if TYPE_CHECKING:
    import pyarrow.compute as pc
    from lance_engine.dataset import Dataset

_SUFFIX = ".lance"

__all__ = ["DataFusionTable", "install", "register"]


class DataFusionTable(pads.Dataset):  # type: ignore[misc]
    """One dataset as DataFusion scans it, over `EngineTable.schema`."""

    def __init__(self, table: EngineTable) -> None:
        # The base class is an interface here: its own constructor refuses subclasses, every call DataFusion
        # makes is below.
        self.table = table
        #: (columns, filter) of each planned scan, for explanations
        self.planned: list[tuple[tuple[str, ...], pc.Expression | None]] = []

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(
        self, columns: Sequence[str] | None = None, filter: pc.Expression | None = None, **options: Any
    ) -> TableScanner:
        """Called once per planned scan, for its schema."""
        names = self.table.schema.names if columns is None else list(columns)
        self.planned.append((tuple(names), filter))
        return TableScanner(self.table, names, filter)

    def get_fragments(self, filter: pc.Expression | None = None) -> list[Partition]:
        """The partitions of a scan. `filter` is applied by their scanners."""
        return partitions(self.table)


class LanceSchema(SchemaProvider):  # type: ignore[misc]
    """The tables of a session, and any dataset by its path: a plan that names one opens it."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables

    @property
    def table_names(self) -> set[str]:
        return set(self._tables)

    def table(self, name: str) -> Any:
        if name in self._tables:
            return self._tables[name]
        dataset = _open_path(name)
        return None if dataset is None else Table(DataFusionTable(EngineTable(dataset, name)))

    def register_table(self, name: str, table: Any) -> None:
        self._tables[name] = table

    def deregister_table(self, name: str, cascade: bool = False) -> None:
        self._tables.pop(name, None)

    def table_exist(self, name: str) -> bool:
        return name in self._tables or name.rstrip("/").endswith(_SUFFIX)


def register(context: SessionContext, name: str, dataset: Dataset) -> None:
    """Make `dataset` the table `name` of `context`, in place of what had that name."""
    _replace(context, name, DataFusionTable(EngineTable(dataset, name)))


def _replace(context: SessionContext, name: str, table: Any) -> None:
    quoted = quote(name)
    if context.table_exist(quoted):
        context.deregister_table(quoted)
    context.register_table(quoted, Table(table))


def install(context: SessionContext) -> None:
    """Let statements of `context` name datasets by path: ``FROM 'a.lance'``, ``lance_scan('a.lance', 3)``.

    Tables registered so far are kept.
    """
    catalog = context.catalog("datafusion")
    previous = catalog.schema("public")
    catalog.register_schema("public", LanceSchema({name: previous.table(name) for name in previous.names()}))
    _add_lance_scan(context)


def _open_path(name: str) -> Dataset | None:
    """The dataset at a path, ``path.lance`` or ``path.lance@version``; None for another name."""
    from lance_sql.api import open as open_dataset

    location, _, version = name.partition(f"{_SUFFIX}@")
    if version.isdigit():
        return open_dataset(location + _SUFFIX, int(version))
    return open_dataset(name) if name.rstrip("/").endswith(_SUFFIX) else None


def _add_lance_scan(context: SessionContext) -> None:
    def lance_scan(path: Any, version: Any = None) -> Table:
        from lance_sql.api import open as open_dataset

        number = None if version is None else version.python_value().as_py()
        return Table(DataFusionTable(EngineTable(open_dataset(path.python_value().as_py(), number))))

    context.register_udtf(udtf(lance_scan, "lance_scan"))


def start(context: SessionContext | None) -> DataFusionEngine:
    """The engine in a new session, or in an open one."""
    return DataFusionEngine(context)


class DataFusionEngine:
    """A DataFusion session behind the `Engine` interface."""

    name = "datafusion"
    runs_statements_side_by_side = True

    def __init__(self, context: SessionContext | None) -> None:
        if context is None:
            # Parquet, CSV and JSON files are tables by their path, as in DuckDB.
            context = SessionContext(SessionConfig().with_information_schema(True)).enable_url_table()
        self.context = context
        self._tables: dict[str, DataFusionTable] = {}

    def register(self, name: str, dataset: Dataset, system_columns: Sequence[str]) -> None:
        table = DataFusionTable(EngineTable(dataset, name, system_columns))
        self._tables[name] = table
        for spelling in _spellings(name):
            _replace(self.context, spelling, table)

    def unregister(self, name: str) -> None:
        self._tables.pop(name, None)
        for spelling in _spellings(name):
            self.context.deregister_table(quote(spelling))

    def register_other(self, name: str, data: Any) -> None:
        if not isinstance(data, pads.Dataset):
            data = pads.dataset(_as_table(data))
        self._tables.pop(name, None)
        _replace(self.context, name, data)

    def query(self, text: str, params: Parameters) -> DataFusionQuery:
        if not text.strip():
            return DataFusionQuery(None, self.translate)
        try:
            return DataFusionQuery(self.context.sql(text, param_values=_named(params)), self.translate)
        except Exception as error:
            raise self.translate(error) from None

    def translate(self, error: Exception) -> LanceError:
        return translated(error, self.name, (table.table for table in self._tables.values()))

    def explain(self, text: str, params: Parameters) -> tuple[str, list[ScanReport]]:
        for table in self._tables.values():
            table.planned.clear()
        plan = self.query("EXPLAIN " + text, params).to_table()
        parts = [
            f"{kind}\n{body}" for kind, body in zip(*(column.to_pylist() for column in plan), strict=True)
        ]
        residual = _residual_filters(plan.column(1)[0].as_py())
        scans = [
            ScanReport(
                name,
                table.table.dataset,
                columns,
                () if predicate is None else (str(predicate),),
                residual.get(name, ()),
            )
            for name, table in self._tables.items()
            for columns, predicate in table.planned
        ]
        return "\n".join(parts), scans

    def close(self) -> None:
        self._tables.clear()


_SCAN_BELOW_FILTER = re.compile(r"Filter: (?P<filter>.+)\n\s*TableScan: (?P<table>.+?) projection=")


def _residual_filters(logical_plan: str) -> dict[str, tuple[str, ...]]:
    """Table -> the filter right above its scan, read off the text of a logical plan."""
    return {found["table"]: (found["filter"],) for found in _SCAN_BELOW_FILTER.finditer(logical_plan)}


def _as_table(data: Any) -> pa.Table:
    return data if isinstance(data, pa.Table) else pa.table(data)


def _spellings(name: str) -> set[str]:
    """`name`, and what reaches the session when a statement has it without quotes."""
    return {name, name.lower()}


def _named(params: Parameters) -> dict[str, Any] | None:
    """Positional parameters under the names 1, 2 ... that ``$1``, ``$2`` ask for."""
    if params is None or isinstance(params, Mapping):
        return None if params is None else dict(params)
    return {str(position): value for position, value in enumerate(params, 1)}


class DataFusionQuery:
    """A planned DataFrame, None for a text without a statement."""

    def __init__(self, frame: Any, translate: Callable[[Exception], LanceError]) -> None:
        self._frame = frame
        self.translate = translate

    def to_table(self) -> pa.Table:
        if self._frame is None:
            return pa.table({})
        try:
            return self._frame.to_arrow_table()
        except Exception as error:
            raise self.translate(error) from None

    def stream(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        # Not RecordBatchReader.from_stream: pyarrow frees the native stream without the GIL, and with it
        # Python objects of the scan. That crashes when garbage collection does it in a call from DataFusion.
        if self._frame is None:
            return pa.schema([]), iter(())
        try:
            batches = self._frame.execute_stream()
        except Exception as error:
            raise self.translate(error) from None
        return self._frame.schema(), (batch.to_pyarrow() for batch in batches)
