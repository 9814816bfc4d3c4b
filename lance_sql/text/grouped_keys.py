"""Which columns a query over one table only groups by: what they stand for is needed once for each group.

Only queries of a plain shape are understood: ``SELECT ... FROM t [WHERE ...] GROUP BY a, b [ORDER BY ...]
[LIMIT ...]``, in which the columns are not used but as whole items.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from lance_sql.text.statement import is_alias
from lance_sql.text.tokens import Token, arguments, table_positions

#: Words of queries that are more than one plain SELECT.
_OTHERS: Final = frozenset(
    {
        "ALL", "AT", "COLUMNS", "CUBE", "DISTINCT", "EXCEPT", "FETCH", "GROUPING", "HAVING", "INTERSECT",
        "INTO", "JOIN", "NATURAL", "OVER", "PIVOT", "QUALIFY", "ROLLUP", "SAMPLE", "SETS", "TABLESAMPLE",
        "UNION", "UNPIVOT", "USING", "VALUES", "WINDOW", "WITH",
    }
)  # fmt: skip
_ONCE: Final = ("SELECT", "GROUP")
#: What may follow a column in ORDER BY.
_ORDERS: Final = (
    [], ["ASC"], ["DESC"],
    *([*order, "NULLS", place] for order in ([], ["ASC"], ["DESC"]) for place in ("FIRST", "LAST")),
)  # fmt: skip


class Selected(NamedTuple):
    """A column among what is selected: its characters in the text, and the name that the text gives it."""

    column: str
    start: int
    end: int
    alias: str | None


class GroupedKeys(NamedTuple):
    """The columns of `table` by which a query groups, with nothing else made of those in `only`.

    `place` is that of the table by characters, `named` whether a name of its own follows.
    """

    table: str
    place: tuple[int, int]
    named: bool
    columns: tuple[str, ...]
    only: tuple[str, ...]
    selected: tuple[Selected, ...]


def grouped_keys(tokens: list[Token], table: str, columns: Collection[str]) -> GroupedKeys | None:
    """What a query over a table with such lower-case columns groups by; None if it is of another shape."""
    words = [token.upper for token in tokens]
    if words[:1] != ["SELECT"] or not _OTHERS.isdisjoint(words) or any(words.count(w) != 1 for w in _ONCE):
        return None
    tables = table_positions(tokens)
    if len(tables) != 1:
        return None
    clauses = _clauses(tokens, words)
    place = next(iter(tables))
    if clauses is None or place != clauses["FROM"] + 1 or tokens[place].value != table:
        return None
    if tokens[place].kind not in ("word", "quoted", "string"):
        return None
    alias = place + 1
    if words[alias : alias + 1] == ["AS"]:
        alias += 1
    named = alias < len(tokens) and is_alias(tokens[alias])
    end = min(position for word, position in clauses.items() if word not in ("SELECT", "FROM"))
    if end != (alias + 1 if named else place + 1):
        return None
    qualifier = tokens[alias].value.lower() if named else table.lower()
    return _keys(tokens, clauses, (table, place, named), qualifier, columns)


def _clauses(tokens: list[Token], words: list[str]) -> dict[str, int] | None:
    """Where the clauses of a SELECT begin, in their order; None if there are others."""
    found: dict[str, int] = {}
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        word = words[position]
        if depth or word not in ("SELECT", "FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET"):
            continue
        if word in found:
            return None
        found[word] = position
    order = ["SELECT", "FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "OFFSET"]
    expected = [word for word in order if word in found]
    if list(found) != expected or not {"SELECT", "FROM", "GROUP"} <= found.keys():
        return None
    for word in {"GROUP", "ORDER"} & found.keys():
        if words[found[word] + 1 : found[word] + 2] != ["BY"]:
            return None
    return found


def _keys(
    tokens: list[Token],
    clauses: dict[str, int],
    source: tuple[str, int, bool],
    qualifier: str,
    columns: Collection[str],
) -> GroupedKeys | None:
    table, place, named = source
    starts = sorted(clauses.values())

    def items(word: str, skipped: int) -> list[list[Token]]:
        begin = clauses[word]
        end = next((start for start in starts if start > begin), len(tokens))
        return arguments([token for token in tokens[begin + skipped : end] if token.text != ";"])

    def column(item: list[Token]) -> tuple[str, list[Token]] | None:
        """A column at the beginning of an item, and what follows."""
        if len(item) > 2 and item[1].text == "." and item[0].value.lower() == qualifier:
            item = item[2:]
        if item and item[0].kind in ("word", "quoted") and item[0].value.lower() in columns:
            return item[0].value.lower(), item[1:]
        return None

    groups = [column(item) for item in items("GROUP", 2)]
    if not all(group is not None and not group[1] for group in groups):
        return None
    keys = tuple(group[0] for group in groups if group is not None)
    expected = dict.fromkeys(keys, 0)
    for key in keys:
        expected[key] += 1
    selected, shown = [], set()
    for item in items("SELECT", 1):
        found = column(item)
        if found is None or found[0] not in keys:
            continue
        key, rest = found
        if rest[:1] and rest[0].upper == "AS":
            rest = rest[1:]
        if len(rest) > 1 or (rest and not is_alias(rest[0])):
            continue
        alias = rest[0].value if rest else None
        last = item[-1] if not rest else item[len(item) - len(rest) - 1 - (item[-2].upper == "AS")]
        selected.append(Selected(key, item[0].start, last.end, alias))
        expected[key] += 1 + (alias is not None and alias.lower() == key)
        if alias is None or alias.lower() == key:
            shown.add(key)
    if "ORDER" in clauses:
        for item in items("ORDER", 2):
            name = item[0].value.lower() if item and item[0].kind in ("word", "quoted") else ""
            if name in shown and [token.upper for token in item[1:]] in _ORDERS:
                expected[name] += 1
    only = tuple(
        key
        for key in keys
        if sum(token.kind in ("word", "quoted") and token.value.lower() == key for token in tokens)
        == expected[key]
    )
    return GroupedKeys(table, (tokens[place].start, tokens[place].end), named, keys, only, tuple(selected))
