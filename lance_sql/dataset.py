"""The public dataset class: the operations of the engine, rows by position, data frames and display."""

from __future__ import annotations

import html
import operator
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
from lance_engine.base import legible_line, rows_as_python, unknown_option, with_extensions, without_secrets
from lance_engine.errors import (
    InvalidArgumentError,
    PositionOutOfRangeError,
    UnsupportedFeatureError,
)

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.display.amounts import counted
from lance_sql.display.frames import to_pandas, to_polars
from lance_sql.engines.duckdb.source import DuckDBSource
from lance_sql.engines.table import EngineTable
from lance_sql.other_names import DATASET, SCAN_OPTIONS, other_attribute

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd
    import polars as pl
    import pyarrow.compute as pc
    from lance_engine.scan import Scanner

    from lance_sql.arrow_dataset import ArrowDataset

#: Options of pyarrow's scans that do not change which rows they return.
_PYARROW_OPTIONS = (
    *("batch_size", "batch_readahead", "fragment_readahead", "fragment_scan_options"),
    *("use_threads", "cache_metadata", "memory_pool"),
)


class Dataset(SqlDataset, DuckDBSource):
    """One version of a Lance dataset; immutable, cheap to open, picklable by location and version.

    `scan`, `take`, `count_rows` and `splits` are methods of the Lance engine. `take` takes **row ids** (the
    ``_rowid`` column), not positions. Use `take_positions`, ``ds[5]``, ``ds[[1, 2]]`` or ``ds[10:20]`` to
    read rows by position; ``len(ds)`` is the number of rows. Filters follow SQL semantics: a comparison with
    null selects no row; see `docs/filters.md`.

    It exports an Arrow stream, which DuckDB, Polars, pandas and other libraries read. For those that expect a
    `pyarrow.dataset.Dataset`, use `to_arrow_dataset`.
    """

    #: what DuckDB asks objects in Python variables that it scans
    _ours = SqlDataset._ours | {
        "accepts",
        "obj",
        "one_shot",
        "pull_under_gil",
        "rows",
        "schema_is_stable",
        "stream",
    }

    def __init__(self, snapshot: Any) -> None:
        if isinstance(snapshot, str | os.PathLike):
            raise InvalidArgumentError(
                "Dataset() does not open datasets", remedy=f"Use lance_sql.open({os.fspath(snapshot)!r})"
            )
        SqlDataset.__init__(self, snapshot)

    def _engine_table(self) -> EngineTable:
        return EngineTable(self)

    if not TYPE_CHECKING:  # type checkers see the real attributes only

        def __getattr__(self, name: str) -> Any:
            return other_attribute(self, "A dataset", name, DATASET, dir(type(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.uri, self.version, self.snapshot.storage_options)

    def to_arrow_dataset(self) -> ArrowDataset:
        """This version as a `pyarrow.dataset.Dataset`; its `take` takes positions, as pyarrow's does.

        Pass it to libraries that expect one, such as ``polars.scan_pyarrow_dataset`` or
        ``SessionContext.register_dataset``.
        """
        from lance_sql.arrow_dataset import ArrowDataset

        return ArrowDataset(self)

    # The methods of pyarrow's and pylance's datasets that mean the same here.

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | str | None = None,
        batch_size: int | None = None,
        **options: Any,
    ) -> Scanner:
        """A scan, as `scan` returns it, with the arguments of pyarrow's.

        `batch_size` is the most rows of a batch. The other `options` of pyarrow, for its threads and its
        memory, have no effect; InvalidArgumentError for unknown ones.
        """
        _check_options(Dataset.scanner, options)
        if isinstance(columns, Mapping):
            raise UnsupportedFeatureError(
                "Computed columns are not supported by scanner()",
                remedy="Use lance_sql.sql() or a list of column names",
            )
        return self.scan(columns, filter, batch_size=batch_size)

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        **options: Any,
    ) -> pa.Table:
        """The rows as a table; see `scanner`. `limit` is the most rows, after the first `offset`."""
        _check_options(Dataset.to_table, options)
        if limit is not None or offset is not None:
            return self.scan(columns, filter, limit=limit, offset=offset).to_table()
        return self.scanner(columns, filter, **options).to_table()

    def to_batches(
        self, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; see `scanner`."""
        _check_options(Dataset.to_batches, options)
        return self.scanner(columns, filter, **options).to_batches()

    def head(
        self, num_rows: int = 5, columns: Sequence[str] | None = None, filter: Any = None, **options: Any
    ) -> pa.Table:
        """The first `num_rows` rows that pass `filter`."""
        _check_options(Dataset.head, options)
        return self.scan(columns=columns, filter=filter, limit=num_rows).to_table()

    def count_rows(self, filter: Any = None, **options: Any) -> int:
        """The number of rows that pass `filter`; without a filter, it comes from metadata."""
        _check_options(Dataset.count_rows, options)
        count: int = super().count_rows(filter)
        return count

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return self.count_rows(), len(self.schema.names)

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
    ) -> pd.DataFrame:
        """The rows as a pandas DataFrame; `limit` and `offset` as in `to_table`. pandas must be installed."""
        return to_pandas(self.scan(columns, filter, limit=limit, offset=offset).to_table())

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        filter: Any = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
    ) -> pl.DataFrame:
        """The rows as a Polars DataFrame; `limit` and `offset` as in `to_table`. Polars must be installed."""
        return to_polars(self.scan(columns, filter, limit=limit, offset=offset).to_table())

    # rows by position

    def __len__(self) -> int:
        return self.count_rows()

    def __bool__(self) -> bool:
        return True  # a dataset without rows is true

    def __getitem__(self, index: int | slice | npt.ArrayLike) -> Any:
        """The row at a position as a dictionary; the rows of a slice or of several positions as a table.

        Negative positions count from the end, if there is one position or a slice.
        """
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step == 1:
                return self.scan(offset=begin, limit=max(0, end - begin)).to_table()
            return self.take_positions(range(begin, end, step))
        if not hasattr(index, "__index__") or getattr(index, "shape", None):
            return self.take_positions(index)
        position = operator.index(index)  # type: ignore[arg-type]
        if not -len(self) <= position < len(self):
            raise PositionOutOfRangeError(
                f"Position {position:,} is out of range: the dataset has {counted(len(self), 'row')}",
                path=self.uri,
                version=self.version,
            )
        return rows_as_python(self.take_positions([position % len(self)]))[0]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries, in the order of positions."""
        for batch in self.scan().to_batches():
            yield from rows_as_python(batch)

    def __arrow_c_schema__(self) -> object:
        return with_extensions(self.storage_schema).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    # display

    def _summary(self) -> str:
        rows = counted(self.count_rows(), "row")
        fragments = counted(len(self.snapshot.fragments), "fragment")
        return f"version {self.version}, {rows} in {fragments}, {counted(len(self.schema.names), 'column')}"

    def __repr__(self) -> str:
        columns = "".join(f"\n  {legible_line(f'{field.name}: {field.type}')}" for field in self.schema)
        return f"<lance_sql.Dataset {legible_line(without_secrets(self.uri))}>\n{self._summary()}{columns}"

    def _repr_html_(self) -> str:
        left = ' style="text-align: left"'  # notebooks right-align cells by default
        rows = "".join(
            f"<tr><td{left}>{html.escape(legible_line(field.name))}</td>"
            f"<td{left}>{html.escape(legible_line(str(field.type)))}</td></tr>"
            for field in self.schema
        )
        return (
            f"<div><b>{html.escape(legible_line(without_secrets(self.uri)))}</b><br>{html.escape(self._summary())}"
            f"<table><tr><th{left}>column</th><th{left}>type</th></tr>{rows}</table></div>"
        )


def _check_options(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _PYARROW_OPTIONS:
            if name in SCAN_OPTIONS:
                raise InvalidArgumentError(f"Unknown option {name!r}", remedy=f"Use {SCAN_OPTIONS[name]}")
            raise unknown_option(function, name)


class _Module(types.ModuleType):
    """The module, with a hint for users of pylance, who write ``lance.dataset(uri)``."""

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise InvalidArgumentError("lance_sql.dataset is a module", remedy="Use lance_sql.open(path)")


sys.modules[__name__].__class__ = _Module


def _reopen(uri: str, version: int, storage_options: Mapping[str, Any] | None) -> Dataset:
    return Dataset.open(uri, version, storage_options=storage_options)
