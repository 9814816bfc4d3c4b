"""What older versions of an engine lack, to skip its tests there."""

from __future__ import annotations

import re
from typing import Final

import datafusion
import duckdb
import pytest

IS_DUCKDB_1: Final = duckdb.__version__.startswith("1.")
#: DuckDB 1 asks Python objects neither for their size nor whether they take a condition over.
needs_duckdb_2 = pytest.mark.skipif(IS_DUCKDB_1, reason="needs the source protocol of DuckDB 2")

#: Parts of statements that mean something else in DuckDB 1, or that it does not have.
_NEWER: Final = (
    "nextval('seq'), nextval('seq')", "MAP {} AS m", "VARIANT", "things", "EXPLAIN ",
    "DROP TABLE IF EXISTS ns.",
)  # fmt: skip
_TIME_ZONE: Final = re.compile(r"<StaticTzInfo ('.+?')>")


def needs_today(statement: str) -> bool:
    """Whether the installed DuckDB is too old for a statement."""
    return IS_DUCKDB_1 and any(part in statement for part in _NEWER)


def without_tables(error: str) -> str:
    """What DuckDB 1 says instead of naming a table of an unknown database."""
    if not IS_DUCKDB_1:
        return error
    return re.sub(r"Table '(\w+)\.main\.\w+' not found", r'Catalog "\1" does not exist', error)


def of_today(rows: str) -> str:
    """Rows of DuckDB 1 as DuckDB 2 returns them, where only their time zones are objects of another class."""
    return _TIME_ZONE.sub(r"zoneinfo.ZoneInfo(key=\1)", rows)


DATAFUSION: Final = int(datafusion.__version__.partition(".")[0])
#: The first version of DataFusion that has a function, or whose result has the type of today.
_FUNCTIONS: Final = {"any_value": 55, "array_sum": 55, "median": 54}


def missing_function(engine: str, statement: str) -> str:
    """Why a statement cannot be tested on the installed version; empty if it can."""
    for name, version in _FUNCTIONS.items():
        if engine == "datafusion" and version > DATAFUSION and f"{name}(" in statement:
            return f"{name} is another or none in DataFusion {DATAFUSION}"
    return ""


def runs_lateral(engine: str) -> bool:
    """Whether an engine runs a LATERAL search for the vectors of another table."""
    return engine != "datafusion" or DATAFUSION >= 54
