"""The dialect of filter texts for the parser: DuckDB's, with what Lance users write besides.

Backticks quote names as double quotes do, ``X'61'`` is binary, and calls of functions stay what was written.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB

# Functions with their own syntax.
_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


class FilterDialect(DuckDB):  # type: ignore[misc]
    """Not for rendering: trees become text in `lance_engine.expr.render`."""

    # Positions in lists are distinguished from names of fields, and counted, where the list is known.
    INDEX_OFFSET = 0

    class Tokenizer(DuckDB.Tokenizer):  # type: ignore[misc]
        IDENTIFIERS: ClassVar = ['"', "`"]
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]

    class Parser(DuckDB.Parser):  # type: ignore[misc]
        FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}
        FUNCTION_PARSERS: ClassVar = {
            name: parser for name, parser in DuckDB.Parser.FUNCTION_PARSERS.items() if name in _SPECIAL
        }
