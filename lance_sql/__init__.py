"""SQL over Lance datasets: DuckDB, DataFusion and Spark.

Importing this package is cheap: pyarrow and the SQL engines are imported at first use.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from lance_engine.errors import LanceError

if TYPE_CHECKING:
    from lance_engine.base import memory_limit, set_memory_limit
    from lance_engine.io import set_cache

    from lance_sql.api import connect, open, sql, write
    from lance_sql.dataset import Dataset
    from lance_sql.errors import SqlError
    from lance_sql.polars import scan_polars
    from lance_sql.session.connection import Connection
    from lance_sql.session.result import QueryResult

__all__ = [
    "Connection",
    "Dataset",
    "LanceError",
    "QueryResult",
    "SqlError",
    "connect",
    "datafusion",
    "dbapi",
    "duckdb",
    "memory_limit",
    "open",
    "scan_polars",
    "set_cache",
    "set_memory_limit",
    "spark",
    "sql",
    "write",
]

#: public name -> (module, attribute); None: the module itself
_LAZY = {
    "Connection": ("lance_sql.session.connection", "Connection"),
    "Dataset": ("lance_sql.dataset", "Dataset"),
    "QueryResult": ("lance_sql.session.result", "QueryResult"),
    "SqlError": ("lance_sql.errors", "SqlError"),
    "connect": ("lance_sql.api", "connect"),
    "datafusion": ("lance_sql.datafusion", None),
    "dbapi": ("lance_sql.dbapi", None),
    "duckdb": ("lance_sql.duckdb", None),
    "memory_limit": ("lance_engine.base", "memory_limit"),
    "open": ("lance_sql.api", "open"),
    "scan_polars": ("lance_sql.polars", "scan_polars"),
    "set_cache": ("lance_engine.io", "set_cache"),
    "set_memory_limit": ("lance_engine.base", "set_memory_limit"),
    "spark": ("lance_sql.spark", None),
    "sql": ("lance_sql.api", "sql"),
    "write": ("lance_sql.api", "write"),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("lance-sql")
    try:
        module_name, attribute = _LAZY[name]
    except KeyError:
        raise _no_attribute(name) from None
    from lance_engine.base import load

    module = load(module_name)
    value = module if attribute is None else getattr(module, attribute)
    globals()[name] = value
    return value


def _no_attribute(name: str) -> AttributeError:
    other_names = importlib.import_module("lance_sql.other_names")
    shown = f"module {__name__!r}"
    error: AttributeError = other_names.no_attribute(
        sys.modules[__name__], shown, name, other_names.PACKAGE, __all__
    )
    return error


def __dir__() -> list[str]:
    return sorted(__all__)
