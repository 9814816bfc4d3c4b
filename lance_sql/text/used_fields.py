"""The parts of columns that a query uses, based on its tokens: ``SELECT st.a FROM t`` only needs ``st.a``.

Of structs these are fields, of JSON documents members.

Every use of a name that is not clearly a field counts as a use of the whole column, and nothing is reported
if columns may be used without being named. So a misread word only reduces the savings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, NamedTuple

from lance_sql.text.statement import is_alias
from lance_sql.text.tokens import Token, quote, table_positions

#: The path from a column to a field or member.
Path = tuple[str, ...]
#: The path that a query uses where it names a column; empty if it may use all of the column.
FindPath = Callable[[list[Token], int], Path]

#: Keywords that use columns without naming them, or start something other than a query.
_OTHERS: Final = frozenset(
    {
        "COLUMNS", "DELETE", "DESCRIBE", "INTO", "NATURAL", "PIVOT", "SHOW", "SUMMARIZE", "TABLE", "UNPACK",
        "UNPIVOT", "UPDATE",
    }
)  # fmt: skip
#: Functions whose arguments may contain FROM.
_WITH_FROM: Final = frozenset({"EXTRACT", "OVERLAY", "SUBSTRING", "TRIM"})
#: Tokens around ``*`` where it is not a multiplication.
_BEFORE_STAR: Final = frozenset({"(", ",", ".", "ALL", "BY", "DISTINCT", "SELECT"})
_BEHIND_STAR: Final = frozenset(
    {
        ",", ".", ")", ";", "EXCEPT", "EXCLUDE", "FROM", "ILIKE", "INTERSECT", "LIKE", "NOT", "RENAME",
        "REPLACE", "SIMILAR", "UNION",
    }
)  # fmt: skip


class TablePlace(NamedTuple):
    """The position of a table name, in characters; `is_named` if an alias follows."""

    start: int
    end: int
    written: str
    is_named: bool

    def instead(self, table: str) -> str:
        """The text for another table at this place, which is called as before."""
        if self.is_named:
            return quote(table)
        return (
            f"{quote(table)} AS {quote(self.written[1:-1]) if self.written[0] == chr(39) else self.written}"
        )


class UsedFields(NamedTuple):
    """`paths` in columns of which only parts are used, by lower-case name.

    `places` are the positions of the tables, by name.
    """

    paths: dict[str, frozenset[Path]]
    places: dict[str, list[TablePlace]]


def used_fields(
    tokens: list[Token], tables: Collection[str], columns: Mapping[str, FindPath]
) -> UsedFields | None:
    """The parts of `columns` (by lower-case names) of `tables` that a query uses.

    None if this is uncertain, and if it uses no parts.
    """
    words = [token.upper for token in tokens]
    mentioned = {token.value.lower() for token in tokens if token.kind in ("word", "quoted")}
    if words[:1] not in (["SELECT"], ["WITH"]) or mentioned.isdisjoint(columns.keys()):
        return None
    if not _OTHERS.isdisjoint(words) or "#" in words or not selects_by_name(tokens, words):
        return None
    places: dict[str, list[TablePlace]] = {}
    names: set[int] = set()
    meant = {name.lower() for name in tables}
    for position in sorted(table_positions(tokens)):
        token = tokens[position]
        if token.value not in tables or token.kind not in ("word", "string", "quoted"):
            continue
        alias = alias_position(tokens, position)
        names |= {position} if alias is None else {position, alias}
        last = position if alias is None else alias
        if last + 1 < len(tokens) and tokens[last + 1].text in ("(", "."):
            return None
        if alias is not None:
            meant.add(tokens[alias].value.lower())
        places.setdefault(token.value, []).append(
            TablePlace(token.start, token.end, token.text, alias is not None)
        )
    paths = _paths(tokens, names, meant, columns)
    return UsedFields(paths, places) if paths and places else None


def alias_position(tokens: list[Token], position: int) -> int | None:
    """The position where a table at this position gets an alias."""
    following = position + 1
    if following < len(tokens) and tokens[following].upper == "AS":
        return following + 1 if following + 1 < len(tokens) else None
    return following if following < len(tokens) and is_alias(tokens[following]) else None


def _paths(
    tokens: list[Token], names: Collection[int], tables: Collection[str], columns: Mapping[str, FindPath]
) -> dict[str, frozenset[Path]]:
    """The used parts of `columns`; nothing if a row of a table may be used as a value."""
    found: dict[str, set[Path]] = {}
    whole: set[str] = set()
    for position, token in enumerate(tokens):
        if token.kind not in ("word", "quoted") or position in names:
            continue
        name = token.value.lower()
        if name in tables and not _is(tokens, position + 1, "."):
            return {}
        if name in columns:
            path = columns[name](tokens, position)
            if path:
                found.setdefault(name, set()).add(path)
            else:
                whole.add(name)
    return {name: frozenset(paths) for name, paths in found.items() if name not in whole}


def field_path(tokens: list[Token], position: int) -> Path:
    """The path to the field that is used of a struct."""
    return tuple(name for name, _ in _path(tokens, position + 1))


def path_end(tokens: list[Token], position: int, path: Path) -> int:
    """The position behind the column at `position` and the path that `field_path` found there."""
    ends = [position + 1, *(end for _, end in _path(tokens, position + 1))]
    return ends[len(path)]


def _path(tokens: list[Token], position: int) -> Iterator[tuple[str, int]]:
    """The names in ``.a.b`` and ``['a']['b']`` at a position, and the positions behind them."""
    while position + 1 < len(tokens):
        name = tokens[position + 1]
        if tokens[position].text == "." and name.kind in ("word", "quoted"):
            position += 2
            if _is(tokens, position, "("):  # a function, called as a method
                return
        elif tokens[position].text == "[" and name.kind == "string" and _is(tokens, position + 2, "]"):
            position += 3
        else:
            return
        yield name.value, position


def _is(tokens: list[Token], position: int, text: str) -> bool:
    return position < len(tokens) and tokens[position].text == text


def selects_by_name(tokens: list[Token], words: list[str]) -> bool:
    """Whether all selected columns are named: without ``*``, and with a SELECT for each FROM."""
    selecting = [False]  # for each open bracket: whether a FROM may come
    for position, (token, word) in enumerate(zip(tokens, words, strict=True)):
        before = words[position - 1] if position else ""
        if token.text in ("(", "[", "{"):
            selecting.append(before in _WITH_FROM)
        elif token.text in (")", "]", "}"):
            selecting = selecting[:-1] or [False]
        elif word == "SELECT":
            selecting[-1] = True
        elif before == "(" and word == "DESC":
            return False
        elif word == "FROM" and before != "DISTINCT":
            if not selecting[-1]:
                return False
            selecting[-1] = False
        elif token.text == "*" and not _multiplies(words, position) and not _counts(words, position):
            return False
    return True


def _counts(words: list[str], position: int) -> bool:
    """Whether ``*`` is that of ``count(*)``."""
    around = words[max(position - 2, 0) : position + 2]
    return around == ["COUNT", "(", "*", ")"]


def _multiplies(words: list[str], position: int) -> bool:
    """Whether ``*`` stands between two values."""
    before = words[position - 1] if position else ""
    behind = words[position + 1] if position + 1 < len(words) else ";"
    if before in _BEFORE_STAR or behind in _BEHIND_STAR:
        return False
    return before != ")" or "DISTINCT" not in words or "ON" not in words
