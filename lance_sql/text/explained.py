"""EXPLAIN and its likes: the query that they explain, and whether it runs."""

from __future__ import annotations

from typing import Final, NamedTuple

from lance_sql.text.kinds import KINDS, Does
from lance_sql.text.statement import Statement, once_per_statement
from lance_sql.text.tokens import Token, closing

_WORDS: Final = frozenset({"ANALYZE", "DESC", "DESCRIBE", "EXPLAIN", "SUMMARIZE", "VERBOSE"})
_OPTIONS: Final = frozenset({"ANALYZE", "FORMAT", "VERBOSE"})


class Explained(NamedTuple):
    """The query of an EXPLAIN statement, and whether to run it."""

    query: Statement
    analyze: bool


@once_per_statement
def explained_query(statement: Statement) -> Explained | None:
    """The query of an EXPLAIN statement; None for other statements, and for those with format options."""
    words = [token.upper for token in statement.tokens[:3]]
    if words[:1] != ["EXPLAIN"]:
        return None
    analyze = words[1:2] == ["ANALYZE"]
    first = 2 if analyze else 1
    following = words[first : first + 1]
    if following in ([], ["("]) or not KINDS.get(following[0], Does.OTHER) & Does.QUERY:
        return None
    return Explained(Statement(statement.original[statement.tokens[first].start :]), analyze)


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
