"""The dialect of filter texts for the parser: DuckDB's, with additional syntax that Lance users write.

Backticks quote names like double quotes, ``X'61'`` is binary, and function calls are kept as written.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokens import TokenType

from lance_engine.expr.interpreted_parser import duckdb_parser

# Functions with special syntax.
_SPECIAL = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")


# The words of conditions. All others, those of statements above all, name columns.
_WORDS = """
    ALL AND ANY AS BETWEEN CASE DISTINCT ELSE END ESCAPE EXISTS FALSE FOR FROM ILIKE IN IS LIKE NOT NULL OR
    OVER SELECT SOME THEN TRUE WHEN WHERE WITH
"""


# What follows MAP, UNION and similar words where they do not name a column.
_AFTER_NESTED = (TokenType.L_PAREN, TokenType.L_BRACE)


def _is_kept(word: str, kind: TokenType) -> bool:
    is_word = word.replace("_", "").isalnum()
    return not is_word or word in _WORDS.split() or kind in DuckDB.Parser.TYPE_TOKENS


class FilterDialect(DuckDB):  # type: ignore[misc]
    """Not for rendering: trees become text in `lance_engine.expr.render`."""

    # List positions are distinguished from field names, and counted, where the list type is known.
    INDEX_OFFSET = 0

    class Tokenizer(DuckDB.Tokenizer):  # type: ignore[misc]
        KEYWORDS: ClassVar = {
            word: kind for word, kind in DuckDB.Tokenizer.KEYWORDS.items() if _is_kept(word, kind)
        }
        IDENTIFIERS: ClassVar = ['"', "`"]
        HEX_STRINGS: ClassVar = [("x'", "'"), ("X'", "'")]

    class Parser(duckdb_parser()):  # type: ignore[misc]
        ARRAY_CONSTRUCTORS: ClassVar[dict[str, object]] = {}  # names of columns as well
        FUNCTIONS: ClassVar[dict[str, object]] = {}
        NO_PAREN_FUNCTIONS: ClassVar[dict[object, object]] = {}

        def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> Any:
            """Names of types before a subscript, and those of lists and structs, are columns as well."""
            token, following = self._curr, self._next.token_type if self._next else None
            kind = token.token_type if token else None
            has_subscript = following == TokenType.L_BRACKET and kind != TokenType.NULL
            is_nested = kind in self.NESTED_TYPE_TOKENS and following not in _AFTER_NESTED
            if kind in self.TYPE_TOKENS and (has_subscript or is_nested):
                self._advance()
                name = exp.Identifier(this=token.text).update_positions(token)
                return self._parse_column_ops(exp.Column(this=name))
            return super()._parse_type(parse_interval, fallback_to_identifier)

        FUNCTION_PARSERS: ClassVar = {
            name: parser for name, parser in DuckDB.Parser.FUNCTION_PARSERS.items() if name in _SPECIAL
        }
