"""DuckDB settings that determine the meaning of a statement."""

from __future__ import annotations

import re
from typing import Final

import duckdb

#: Statements that certainly change no setting.
_HARMLESS: Final = re.compile(
    r"\s*(?:create|delete|describe|drop|from|insert|select|show|summarize|table|update|values|with)\b",
    re.IGNORECASE,
)


class DatabaseSettings:
    """The settings of a database and of its cursors; read once, until a statement may change them.

    With `own`, all statements are known; otherwise somebody else may change settings at any time.
    """

    def __init__(self, *, own: bool) -> None:
        self._is_fixed = own
        self._compares_bytes: bool | None = None

    def runs(self, text: str) -> None:
        """Called before a statement runs."""
        # From then on, because it may only run when its result is read.
        if _HARMLESS.match(text) is None:
            self._is_fixed = False

    def compares_bytes(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Whether strings without a collation of their own are equal where their bytes are."""
        found = self._compares_bytes if self._is_fixed else None
        if found is None:
            found = self._compares_bytes = compares_bytes(connection)
        return found


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
