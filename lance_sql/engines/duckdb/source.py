"""DuckDB's scan source protocol, for a Python variable in a DuckDB query that holds a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from lance_sql.engines.duckdb.versions import ArrowScanSource

if TYPE_CHECKING:
    from lance_sql.engines.table import EngineTable


class DuckDBSource(ArrowScanSource):  # type: ignore[misc]
    """What DuckDB asks an object that it scans: the row count, conditions to apply, and a stream."""

    #: DuckDB may keep the schema
    schema_is_stable = True

    def _engine_table(self) -> EngineTable:
        raise NotImplementedError

    @cached_property
    def _duckdb(self) -> Any:
        from lance_sql.engines.duckdb.table import DuckDBTable

        return DuckDBTable(self._engine_table())

    @property
    def obj(self) -> Self:
        """The scanned object, for DuckDB."""
        return self

    def rows(self) -> int:
        """The row count, for DuckDB's optimizer."""
        count: int = self._duckdb.rows()
        return count

    def accepts(self, predicate: Any) -> bool:
        """Whether our scan applies `predicate` for DuckDB; see `lance_sql.engines.duckdb.DuckDBTable`."""
        accepted: bool = self._duckdb.accepts(predicate)
        return accepted

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """The Arrow stream of a DuckDB scan."""
        stream: tuple[object, bool] = self._duckdb.stream(columns, filters)
        return stream
