"""The interface of sessions for statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import pyarrow as pa

from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.base import Parameters
from lance_sql.engines.capabilities import Capabilities
from lance_sql.pushdown_settings import Pushdowns
from lance_sql.searches.prepared import PreparedSearches
from lance_sql.text.statement import Statement

#: Placeholder for the name of a temporary registration in generated statements.
LENT = "lance_sql_rows"


class Rows(Protocol):
    """The rows of a query, which runs when they are read."""

    @property
    def columns(self) -> list[str]:
        """The column names."""

    def run(self, *, raises: bool = False) -> None:
        """Run the query, and keep its rows or its error."""

    def arrow(self) -> pa.Table:
        """All rows."""

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of record batches."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...


class SearchSettings(Protocol):
    """Settings for searches in statements."""

    #: whether an index may answer queries ordered by a distance
    by_index: bool

    @property
    def prepared(self) -> PreparedSearches:
        """Prepared statements with searches."""


class Plan(Protocol):
    """The explanation of a query."""

    def table(self) -> pa.Table:
        """As the rows of an EXPLAIN."""


class Session(Protocol):
    """A connection, as statements see it."""

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the engine."""

    @property
    def searching(self) -> SearchSettings:
        """Settings for searches in statements."""

    @property
    def catalog(self) -> Catalog:
        """Finds the datasets that a statement names."""

    #: whether queries are checked for conflicts when later transactions are committed
    serializable: bool
    #: which pushdowns queries use
    pushdowns: Pushdowns

    def quotes_are_texts(self) -> bool:
        """Whether queries take what is in quotation marks for a text, in some dialects of DataFusion."""

    def begin(self) -> None:
        """Begin a transaction: changes of datasets and of tables of the engine take effect with `commit`."""

    def commit(self) -> None:
        """Commit the open transaction."""

    def rollback(self) -> None:
        """Roll back the open transaction."""

    def listing(self, name: str) -> pa.Table:
        """What the engine lists under this name, such as ``information_schema.tables``, with all datasets."""

    def databases(self) -> list[str]:
        """The names of the databases of the engine."""

    def first_schema(self) -> Sequence[str]:
        """The default database and schema of the engine when the session began."""

    def table_names(self) -> list[str]:
        """The names that a statement may use: datasets, and the engine's own tables and views."""

    def select(self, text: str | Statement, params: Parameters = None) -> Rows:
        """The rows of a query."""

    def explain(self, text: str | Statement, params: Parameters = None, *, analyze: bool = False) -> Plan:
        """The plan of a query, which runs with `analyze`."""

    def computing(self) -> Session:
        """A DuckDB session over the same datasets: this one, or a separate one.

        Values in statements follow DuckDB's rules, whichever engine runs queries.
        """

    def lend(self, data: Any, system_columns: Sequence[str] = ()) -> AbstractContextManager[str]:
        """Register a dataset or Arrow data under a temporary name in this block."""
