"""Lance datasets in a DuckDB connection of your own: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.duckdb import DuckDBTable, register
from lance_sql.engines.duckdb_names import install

__all__ = ["DuckDBTable", "install", "register"]
