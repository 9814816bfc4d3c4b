"""Which columns a query can use at all: those that its text names.

Engines ask for some column where they only need to know how many rows there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from lance_sql.text.from_first import without_select
from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement, is_alias
from lance_sql.text.tokens import Token, table_positions

#: Words by which a query uses columns without naming them; one in front of a table names none of its own.
_UNNAMED: Final = frozenset(
    {"COLUMNS", "DESCRIBE", "NATURAL", "PIVOT", "SHOW", "SUMMARIZE", "TABLE", "UNPIVOT", "VALUES"}
)  # fmt: skip


class NamedColumns(NamedTuple):
    """The lower-case words of a query, among them all columns, and how often it names each table."""

    words: frozenset[str]
    tables: Mapping[str, int]


@once_per_statement
def named_columns(statement: Statement) -> NamedColumns | None:
    """What a query names; None if it may use columns that it does not name."""
    tokens = statement.tokens
    words = [token.upper for token in tokens]
    if words[:1] != ["SELECT"] or "COUNT" not in words or "FROM" not in words:
        return None
    if not _UNNAMED.isdisjoint(words) or "#" in words or any(without_select(tokens)):
        return None
    for position, word in enumerate(words):
        if word == "*" and words[position - 2 : position] + words[position + 1 : position + 2] != [
            *("COUNT", "(", ")")
        ]:
            return None
    named = Counter(
        token.value.lower()
        for token, after in zip(tokens, [*words[1:], ""], strict=True)
        if token.kind in ("word", "quoted", "string") and after != "."
    )
    places = [place for place in table_positions(tokens) if words[place] != "SELECT"]
    tables = Counter(tokens[place].value for place in places)
    # The name of a table alone stands for all of its columns.
    alone = Counter(name for place in places for name in _names(tokens, place))
    if any(named[name] != times for name, times in alone.items()):
        return None
    return NamedColumns(frozenset(token.value.lower() for token in tokens), tables)


def _names(tokens: list[Token], place: int) -> set[str]:
    """The lower-case names of a table: its own, and the one that follows."""
    following = place + 1
    if following < len(tokens) and tokens[following].upper == "AS":
        following += 1
    found = {tokens[place].value.lower()}
    if following < len(tokens) and is_alias(tokens[following]):
        found.add(tokens[following].value.lower())
    return found
