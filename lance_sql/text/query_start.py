"""Statements that are only explained, and the position of the query in them."""

from __future__ import annotations

from typing import Final

from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, closing

_WORDS: Final = frozenset({"ANALYZE", "DESC", "DESCRIBE", "EXPLAIN", "SUMMARIZE", "VERBOSE"})
_OPTIONS: Final = frozenset({"ANALYZE", "FORMAT", "VERBOSE"})


def query_position(tokens: list[Token]) -> int:
    """The position in `tokens` after ``EXPLAIN (ANALYZE, FORMAT JSON)`` and similar prefixes."""
    position = 0
    while position < len(tokens):
        following = tokens[position + 1].upper if position + 1 < len(tokens) else ""
        if tokens[position].upper in _WORDS:
            position += 1
        elif position and tokens[position].upper == "FORMAT":
            position += 2
        elif position and tokens[position].text == "(" and following in _OPTIONS:
            end = closing(tokens, position)
            if end is None:
                return position
            position = end + 1
        else:
            break
    return position


@once_per_statement
def is_only_explained(statement: Statement) -> bool:
    """Whether an engine explains the statement instead of running it."""
    tokens = statement.tokens
    before = [token.upper for token in tokens[: query_position(tokens)]]
    return before[:1] == ["EXPLAIN"] and "ANALYZE" not in before
