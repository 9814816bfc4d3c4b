"""What statements need of the session that they run in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.base import Parameters
from lance_sql.engines.capabilities import Capabilities
from lance_sql.text.statement import Statement

#: Stands for the name of lent data in the texts that statements build.
LENT = "lance_sql_rows"


class Rows(Protocol):
    """The rows of a query, which runs when they are asked for."""

    @property
    def columns(self) -> list[str]:
        """The column names."""

    def arrow(self) -> pa.Table:
        """All rows."""

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class SearchSettings(Protocol):
    """How searches in statements are answered."""

    #: whether queries in the order of a distance may be answered by an index
    by_index: bool


class Session(Protocol):
    """A connection, as statements see it."""

    @property
    def capabilities(self) -> Capabilities:
        """What the engine of the session can do."""

    @property
    def searching(self) -> SearchSettings:
        """How searches in statements are answered."""

    @property
    def catalog(self) -> Catalog:
        """Finds the datasets that a statement names."""

    #: whether what queries read counts when the transactions that follow are committed
    serializable: bool

    def begin(self) -> None:
        """Begin a transaction: changes of datasets and of tables of the engine take effect with `commit`."""

    def commit(self) -> None:
        """Commit the open transaction."""

    def rollback(self) -> None:
        """Undo the open transaction."""

    def listing(self, name: str) -> pa.Table:
        """A table of information_schema with all datasets, or ``all_tables`` for ``SHOW ALL TABLES``."""

    def databases(self) -> list[str]:
        """The names of the databases of the engine."""

    def table_names(self) -> list[str]:
        """The names that a statement may use: of datasets, and of the engine's own tables and views."""

    def select(self, text: str | Statement, params: Parameters = None) -> Rows:
        """The rows of a query."""

    def computing(self) -> Session:
        """A DuckDB session over the same datasets: this one, or a separate one.

        What a statement computes has the meaning that it has in DuckDB, whatever engine answers queries.
        """

    def lend(self, data: Any, system_columns: Sequence[str] = ()) -> AbstractContextManager[str]:
        """A name that means a dataset or Arrow data while the block runs."""
