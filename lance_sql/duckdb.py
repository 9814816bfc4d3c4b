"""Lance datasets in your own DuckDB connection: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.duckdb.names import install
from lance_sql.engines.duckdb.table import DuckDBTable, register

__all__ = ["DuckDBTable", "install", "register"]
