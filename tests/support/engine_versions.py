"""What older versions of an engine lack, to skip its tests there."""

from __future__ import annotations

from typing import Final

import datafusion
import duckdb
import pytest

#: DuckDB 1 asks Python objects neither for their size nor whether they take a condition over.
needs_duckdb_2 = pytest.mark.skipif(
    int(duckdb.__version__.partition(".")[0]) < 2, reason="needs the source protocol of DuckDB 2"
)

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
