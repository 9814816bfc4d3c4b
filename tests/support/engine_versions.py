"""What older versions of an engine lack, to skip its tests there."""

from __future__ import annotations

import duckdb
import pytest

#: DuckDB 1 asks Python objects neither for their size nor whether they take a condition over.
needs_duckdb_2 = pytest.mark.skipif(
    int(duckdb.__version__.partition(".")[0]) < 2, reason="needs the source protocol of DuckDB 2"
)
