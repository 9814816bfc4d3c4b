"""Statements, and subqueries, that list tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from lance_sql.text.statement import Statement, once_per_statement
from lance_sql.text.tokens import Token

#: The tables that unqualified names can refer to, by name; or all tables, with their columns.
Shown = Literal["names", "columns"]

#: How a query reads the result of `SHOW ALL TABLES`.
ALL_TABLES = (
    "SELECT table_catalog AS database, table_schema AS schema, table_name AS name, "
    "array_agg(column_name ORDER BY ordinal_position) AS column_names, "
    "array_agg(data_type ORDER BY ordinal_position) AS column_types, table_catalog = 'temp' AS temporary "
    "FROM information_schema.columns WHERE lower(table_schema) <> 'information_schema' "
    "GROUP BY table_catalog, table_schema, table_name ORDER BY 1, 2, 3"
)

_ASKING: dict[tuple[str, ...], Shown] = {
    ("SHOW", "TABLES"): "names",
    ("PRAGMA", "SHOW_TABLES"): "names",
    ("SHOW",): "columns",
    ("DESCRIBE",): "columns",
    ("SHOW", "ALL", "TABLES"): "columns",
    ("PRAGMA", "SHOW_TABLES_EXPANDED"): "columns",
}


def shown(tokens: Sequence[Token]) -> Shown | None:
    """The kind of listing that a statement requests; None for other statements."""
    if not 0 < len(tokens) <= 4:
        return None
    return _ASKING.get(tuple(token.upper for token in tokens if token.text != ";"))


@once_per_statement
def shown_within(statement: Statement) -> list[tuple[int, int, Shown]]:
    """The positions of ``(SHOW TABLES)`` or ``(SHOW ALL TABLES)`` in a statement, without the parentheses."""
    tokens = statement.tokens
    places = []
    for place, token in enumerate(tokens[:-2]):
        if token.text == "(" and tokens[place + 1].upper in ("SHOW", "DESCRIBE"):
            end = next((n for n in range(place + 2, min(place + 5, len(tokens))) if tokens[n].text == ")"), 0)
            what = shown(tokens[place + 1 : end]) if end else None
            if what is not None:
                places.append((tokens[place + 1].start, tokens[end - 1].end, what))
    return places


def with_shown(statement: Statement, names: str, columns: str) -> Statement:
    """A statement in which queries replace these parts; unchanged without such parts."""
    text = statement.original
    places = shown_within(statement)
    for start, end, what in reversed(places):
        text = f"{text[:start]}{names if what == 'names' else columns}{text[end:]}"
    return Statement(text) if places else statement


def names_query(names: Sequence[str]) -> str:
    """A query whose rows are `names`."""
    if not names:
        return "SELECT '' AS name WHERE false"
    values = ", ".join("('{}')".format(name.replace("'", "''")) for name in names)
    return f"SELECT name FROM (VALUES {values}) AS shown(name)"
