"""The engines by name."""

from __future__ import annotations

from typing import Any

from lance_engine.base import load

from lance_sql.engines.base import Engine
from lance_sql.errors import EngineNotInstalledError

#: engine name -> (module, class of the session object that `connect` also accepts, what pip installs)
_ENGINES = {
    "duckdb": ("lance_sql.engines.duckdb.session", "DuckDBPyConnection", "duckdb"),
    "datafusion": ("lance_sql.engines.datafusion.session", "SessionContext", "'lance-sql[datafusion]'"),
}


def start(engine: Any, **options: Any) -> Engine:
    """A new session of the engine with this name, or the engine of an open session object.

    `options` are specific to the engine: ``materialize_bytes`` of DataFusion.
    """
    session_class = type(engine).__name__
    for name, (module_name, session_name, requirement) in _ENGINES.items():
        if engine == name or session_class == session_name:
            try:
                load(name)
                module = load(module_name)
            except ImportError as error:
                raise EngineNotInstalledError(
                    f"Cannot import the SQL engine {name!r}: {error}",
                    remedy=f"Install it: pip install {requirement}",
                ) from error
            started: Engine = module.start(None if engine == name else engine, **options)
            return started
    parameters = "" if isinstance(engine, str) else ". Pass parameters of a query as params="
    raise EngineNotInstalledError(
        f"Unknown SQL engine {engine!r}", remedy=f"Choose from {', '.join(_ENGINES)}{parameters}"
    )
