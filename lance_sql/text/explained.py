"""The statement ``EXPLAIN [ANALYZE] SELECT ...``, read off its tokens."""

from __future__ import annotations

from typing import NamedTuple

from lance_sql.text.statement import Statement


class Explained(NamedTuple):
    """The query that a statement asks to explain, and whether it is to run for that."""

    query: Statement
    analyze: bool


def explained_query(statement: Statement) -> Explained | None:
    """What a statement explains; None for others, and for those that say in which form."""
    words = [token.upper for token in statement.tokens[:3]]
    if words[:1] != ["EXPLAIN"]:
        return None
    analyze = words[1:2] == ["ANALYZE"]
    first = 2 if analyze else 1
    if words[first : first + 1] not in (["SELECT"], ["WITH"], ["FROM"]):
        return None
    return Explained(Statement(statement.original[statement.tokens[first].start :]), analyze)
