"""Lance datasets in your own DuckDB connection: `register` one by name, or `install` all names."""

from __future__ import annotations

from lance_sql.engines.duckdb.table import register
from lance_sql.installed.duckdb import install

__all__ = ["install", "register"]


def __dir__() -> list[str]:
    return sorted(__all__)
