"""DuckDB settings that determine the meaning of a statement."""

from __future__ import annotations

import duckdb


def compares_bytes(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether strings without a collation of their own are equal where their bytes are."""
    rows = connection.sql("SELECT current_setting('default_collation')").fetchall()
    return not rows or str(rows[0][0]).lower() in ("", "binary")


def nulls_are_last(connection: duckdb.DuckDBPyConnection, descending: bool) -> bool:
    """Whether nulls come last in an ORDER BY without NULLS FIRST or NULLS LAST."""
    rows = connection.sql("SELECT current_setting('default_null_order')").fetchall()
    order = str(rows[0][0]).lower() if rows else ""
    by_order = "nulls_first_on_asc_last_on_desc" if descending else "nulls_last_on_asc_first_on_desc"
    return order in ("nulls_last", "last", by_order)
