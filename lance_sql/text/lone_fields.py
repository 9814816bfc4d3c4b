"""The places where a query over one table uses fields of structs, so that columns can take their place.

Only ``SELECT ... FROM t ...`` is understood, without other sources: there a name cannot mean anything else.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from lance_sql.text.tokens import Token, table_positions
from lance_sql.text.used_fields import Path, alias_position, field_path, path_end

#: What may follow the table.
_AFTER_TABLE: Final = frozenset(
    {";", "FETCH", "GROUP", "HAVING", "LIMIT", "OFFSET", "ORDER", "QUALIFY", "WHERE", "WINDOW"}
)
#: What follows an item that has the name of its field.
_AFTER_ITEM: Final = frozenset({",", "FROM"})


class FieldUse(NamedTuple):
    """A mention of a field by its characters, without its table; `path` begins with the column."""

    start: int
    end: int
    path: Path


def field_uses(tokens: list[Token], table: str, columns: Collection[str]) -> list[FieldUse] | None:
    """The uses of fields of `columns` (by lower-case names) of `table`.

    None if the query may have other sources, uses a column as a whole, or refers to an item of the SELECT
    list by the name that it has from its field.
    """
    words = [token.upper for token in tokens]
    tables = table_positions(tokens)
    if words.count("SELECT") != 1 or "WITH" in words or len(tables) != 1:
        return None
    (place,) = tables
    alias = alias_position(tokens, place)
    last = place if alias is None else alias
    if tokens[place].value != table or "".join(words[last + 1 : last + 2]) not in _AFTER_TABLE | {""}:
        return None
    names = {tokens[position].value.lower() for position in (place, last)}
    found: list[FieldUse] = []
    #: the names of items, which their fields give them
    implied: set[str] = set()
    others: set[str] = set()
    position = 0
    while position < len(tokens):
        token = tokens[position]
        named = token.kind in ("word", "quoted") and position not in (place, alias)
        path = field_path(tokens, position) if named and token.value.lower() in columns else ()
        end = path_end(tokens, position, path)
        if path:
            if not _is_column(tokens, position, names):
                return None
            found.append(FieldUse(token.start, tokens[end - 1].end, (token.value, *path)))
            if "".join(words[end : end + 1]) in _AFTER_ITEM:
                implied.add(path[-1].lower())
        elif named and token.value.lower() in columns:
            return None
        else:
            others.add(token.value.lower())
        position = end
    return found if found and implied.isdisjoint(others) else None


def _is_column(tokens: list[Token], position: int, tables: Collection[str]) -> bool:
    """Whether a name is that of a column, maybe after the name of its table."""
    if position == 0 or tokens[position - 1].text != ".":
        return True
    is_deeper = position > 2 and tokens[position - 3].text == "."
    return position > 1 and tokens[position - 2].value.lower() in tables and not is_deeper
