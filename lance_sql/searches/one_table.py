"""Parsing of queries over one dataset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from lance_engine.errors import LanceError

from lance_sql.text.literals import parameter_edits
from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement, is_alias
from lance_sql.text.tokens import Token, table_positions


class TablePlace(NamedTuple):
    """The position of the only table of a statement in its text; `begin` is where its query begins."""

    token: Token
    begin: int
    alias: str | None
    """The name that the rest of the query has for the table, if the text does not give one itself."""


@once_per_statement
def only_table(statement: Statement) -> TablePlace | None:
    """The table of a query with a single table, None for all other statements."""
    tokens = statement.tokens
    places = sorted(table_positions(tokens))
    if len(places) != 1 or not _is_name_alone(tokens, places[0]):
        return None
    begin = next((token.start for token in tokens if token.upper == "SELECT"), 0)
    if any(token.upper not in ("EXPLAIN", "ANALYZE") for token in tokens if token.start < begin):
        return None
    token = tokens[places[0]]
    following = tokens[places[0] + 1] if places[0] + 1 < len(tokens) else None
    has_alias = following is not None and (following.upper == "AS" or is_alias(following))
    return TablePlace(token, begin, None if has_alias else token.value)


def parsed_select(statement: Statement, begin: int) -> Any:
    """The syntax tree of the query that begins there; None if it is not a plain SELECT.

    Parameters written ``?`` are numbered, ``$1``, because parts of a query do not contain their positions.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(_numbered(statement)[begin:], dialect="duckdb")
    except SqlglotError:
        return None
    return tree if isinstance(tree, exp.Select) else None


def as_condition(tree: Any, value: Callable[[str], Any]) -> str | None:
    """The text of a condition, with parameters replaced by values, and unqualified columns.

    None if a parameter is not a number, a string or a list of these.
    """
    from sqlglot import exp

    copied = tree.copy()
    for column in copied.find_all(exp.Column):
        column.set("table", None)
    for parameter in list(copied.find_all(exp.Parameter, exp.Placeholder)):
        try:
            given = value(parameter.sql(dialect="duckdb"))
        except LanceError:
            return None
        items = given if isinstance(given, list) else [given]
        if not all(isinstance(item, (int, float, str)) for item in items):
            return None
        parameter.replace(exp.convert(given))
    for contained in list(copied.find_all(exp.ArrayContainsAll)):  # otherwise written as an operator
        items = [contained.this, contained.expression]
        call = exp.Anonymous(this="array_has_all", expressions=items)
        copied = call if contained is copied else copied
        contained.replace(call)
    found: str = copied.sql(dialect="duckdb")
    return found


def _numbered(statement: Statement) -> str:
    text = statement.original
    pieces, done = [], 0
    for start, end, replacement in parameter_edits(statement.tokens):
        pieces += [text[done:start], replacement]
        done = end
    return "".join([*pieces, text[done:]])


def _is_name_alone(tokens: list[Token], place: int) -> bool:
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    return tokens[place].kind in ("word", "string", "quoted") and (
        following is None or (following.text not in (".", "(") and following.upper != "AT")
    )
