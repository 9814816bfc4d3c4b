"""DuckDB's parser as Python, also where sqlglot is compiled.

`sqlglot[c]` adds compiled modules, from which Python cannot inherit, to those that they were made from.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

_LOCK = Lock()


@cache
def duckdb_parser() -> type[Any]:
    """The class to inherit from."""
    import sqlglot
    from sqlglot import parser
    from sqlglot.dialects.duckdb import DuckDB

    if str(parser.__file__).endswith(".py"):
        return DuckDB.Parser  # type: ignore[no-any-return]
    with _LOCK:
        interpreted = _interpreted("sqlglot.parser")
        try:
            # What DuckDB's parser inherits from.
            sqlglot.parser = interpreted
            found: type[Any] = _interpreted("sqlglot.parsers.duckdb").DuckDBParser
        finally:
            sqlglot.parser = parser
    return found


def _interpreted(name: str) -> ModuleType:
    """A module from its source, besides the compiled one."""
    compiled = Path(str(sys.modules[name].__file__))
    source = compiled.with_name(f"{compiled.name.partition('.')[0]}.py")
    spec = spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
