"""The capabilities of DuckDB."""

from __future__ import annotations

from lance_sql.engines.capabilities import Capabilities
from lance_sql.engines.duckdb.versions import MESSAGES

CAPABILITIES = Capabilities(
    name="duckdb",
    runs_statements_side_by_side=False,
    numbers_parameters=False,
    shares_names=False,
    folds_names=False,
    computes_statements=True,
    has_procedures=True,
    filters_joins=True,
    reads_tables_ahead=False,
    groups_by_numbers=True,
    groups_by_codes=True,
    backslash_escapes=False,
    messages=MESSAGES,
    unknown_column_remedy="Column names: DESCRIBE the_table, or lance-sql inspect PATH",
)
