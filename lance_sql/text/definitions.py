"""Statements that the engine keeps, such as views: their names must not change their meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from lance_sql.text.metadata_tables import METADATA_TABLES
from lance_sql.text.statement import Statement, once_per_statement
from lance_sql.text.tokens import Token, closing, quote, table_positions

#: What CREATE may be followed by.
_BEFORE_KIND: Final = frozenset({"OR", "REPLACE", "TEMP", "TEMPORARY", "RECURSIVE", "MATERIALIZED"})
_KINDS: Final = frozenset({"VIEW", "MACRO", "FUNCTION"})


@once_per_statement
def is_definition(statement: Statement) -> bool:
    """Whether `statement` creates a view or a macro."""
    tokens = statement.tokens
    if not tokens or tokens[0].upper != "CREATE":
        return False
    return next((token.upper for token in tokens[1:] if token.upper not in _BEFORE_KIND), "") in _KINDS


def view_again(statement: Statement) -> tuple[Token, Statement] | None:
    """The name of the view that `statement` creates, and how it is created again; None for others."""
    tokens = statement.tokens
    place = next((place for place, token in enumerate(tokens) if token.upper == "VIEW"), None)
    if place is None or not is_definition(statement):
        return None
    name = place + 1
    while [token.text for token in tokens[name + 1 : name + 2]] == ["."]:
        name += 2
    if name >= len(tokens):
        return None
    return tokens[name], Statement(f"CREATE OR REPLACE {statement.original[tokens[place].start :]}")


def qualified(statement: Statement, prefix: Callable[[str], Sequence[str] | None]) -> Statement:
    """A view, macro or prepared statement with the full names of its datasets; others unchanged.

    It keeps its meaning after USE. `prefix` returns the namespace and schema in which an unqualified name
    is a dataset.
    """
    tokens = statement.tokens
    if not is_definition(statement) and not (tokens and tokens[0].upper == "PREPARE"):
        return statement
    text, last, pieces = statement.original, 0, []
    hidden = _common_tables(tokens)
    for position in sorted(table_positions(tokens)):
        token = tokens[position]
        if token.value.lower() in hidden or not _is_whole_name(tokens, position):
            continue
        namespace = prefix(token.value)
        if namespace is not None:
            pieces += [text[last : token.start], *(f"{quote(part)}." for part in namespace)]
            last = token.start
    return Statement("".join([*pieces, text[last:]])) if pieces else statement


def _is_whole_name(tokens: Sequence[Token], position: int) -> bool:
    """Whether a table has a name without dots, maybe followed by that of a metadata table."""
    if tokens[position].kind not in ("word", "quoted"):
        return False
    following = [token.text for token in tokens[position + 1 : position + 4]]
    if following[:1] == ["."]:
        return following[1:2] != [] and following[1].lower() in METADATA_TABLES and following[2:] != ["."]
    return following[:1] != ["("]


def _common_tables(tokens: list[Token]) -> set[str]:
    """The names before ``AS (``, in lower case: those of common table expressions hide tables."""
    common_tables = set()
    for position, token in enumerate(tokens):
        words = [following.upper for following in tokens[position + 1 : position + 4]]
        if token.kind in ("word", "quoted") and words[:1] == ["AS"] and "(" in words[1:]:
            common_tables.add(token.value.lower())
        elif token.text == "(" and position:  # a name with columns: t (a, b) AS (
            end = closing(tokens, position)
            if end is not None and [token.upper for token in tokens[end + 1 : end + 2]] == ["AS"]:
                common_tables.add(tokens[position - 1].value.lower())
    return common_tables
