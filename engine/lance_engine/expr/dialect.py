"""The dialect of filter texts for the parser: DuckDB's, with additional syntax that Lance users write.

Backticks quote names like double quotes, ``X'61'`` is binary, and function calls are kept as written.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.duckdb import DuckDB

# Functions with special syntax.
_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


class FilterDialect(DuckDB):  # type: ignore[misc]
    """Not for rendering: trees become text in `lance_engine.expr.render`."""

    # List positions are distinguished from field names, and counted, where the list type is known.
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
