"""Parses the statement ``EXPLAIN [ANALYZE] SELECT ...`` from its tokens."""

from __future__ import annotations

from typing import NamedTuple

from lance_sql.text.kinds import KINDS, Does
from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement


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
