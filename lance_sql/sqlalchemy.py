"""SQLAlchemy: ``create_engine("lance+duckdb:///directory")`` reads the datasets of a directory.

The dialect is that of the package duckdb-engine, over a database in memory.
"""

from __future__ import annotations

from typing import Any

import duckdb

from lance_sql.errors import extra
from lance_sql.installed.duckdb import install

with extra("sqlalchemy"):
    from duckdb_engine import ConnectionWrapper, Dialect

__all__ = ["LanceDialect"]


class LanceDialect(Dialect):
    """The dialect of DuckDB, whose connections know the datasets of the directory in the URL."""

    supports_statement_cache = False

    def connect(self, *_: Any, **options: Any) -> ConnectionWrapper:
        """A connection; `options` are settings of DuckDB and ``connect_args={"storage_options": ...}``."""
        directory = options.pop("database", None)
        storage_options = options.pop("storage_options", None)
        config = {**options.pop("config", {}), **options.pop("url_config", {})}
        connection = duckdb.connect(config=config, **options)
        install(connection, None if directory == ":memory:" else directory, storage_options=storage_options)
        return ConnectionWrapper(connection)
