"""Finds the conditions in WHERE that concern the tables of a statement, from its tokens.

The engine tests them, too: a table for which this is not certain is left out. Only inner joins are
understood, because rows of other joins count although they do not pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement, is_alias
from lance_sql.text.tokens import Token

#: Words of which a condition has at least one if the engine may not offer it to scans.
_WANTED: Final = frozenset(
    {"CONTAINS", "ENDS_WITH", "ILIKE", "LIKE", "OR", "PREFIX", "REGEXP_MATCHES", "STARTS_WITH", "SUFFIX"}
)  # fmt: skip
#: Words that occur in statements in which rows without a match count, or rows before the condition.
_OTHERS: Final = frozenset(
    {"PIVOT", "POSITIONAL", "RECURSIVE", "SAMPLE", "TABLESAMPLE", "UNPIVOT"}
)  # fmt: skip
#: The same between FROM and WHERE.
_OTHER_JOINS: Final = frozenset(
    {"ANTI", "ASOF", "FULL", "LATERAL", "LEFT", "NATURAL", "OUTER", "RIGHT", "SEMI"}
)  # fmt: skip
_SETS: Final = frozenset({"EXCEPT", "INTERSECT", "UNION"})
_AFTER_WHERE: Final = _SETS | {"FETCH", "GROUP", "HAVING", "LIMIT", "OFFSET", "ORDER", "QUALIFY", "WINDOW"}


class Filtered(NamedTuple):
    """A SELECT with a condition. `tables` are all tables in FROM, by the lower-case names of their columns'
    qualifiers; the statement names those of `once` only there. `conditions` are the tokens of conditions
    that must all be true.
    """

    tables: Mapping[str, str]
    once: frozenset[str]
    conditions: Sequence[Sequence[Token]]


@once_per_statement
def table_conditions(statement: Statement) -> Sequence[Filtered]:
    """The conditions that engines may not offer, over tables that a statement names once."""
    return selects_with(statement, _may_be_left) if _may_be_left(statement.tokens) else ()


def selects_with(statement: Statement, is_wanted: Callable[[Sequence[Token]], bool]) -> Sequence[Filtered]:
    """Every SELECT of a statement with wanted conditions over tables that it names once, and only these."""
    tokens = statement.tokens
    words = [token.upper for token in tokens]
    if words[:1] not in (["SELECT"], ["WITH"]) or "WHERE" not in words or not _OTHERS.isdisjoint(words):
        return ()
    named = Counter(
        token.value.lower()
        for token, after in zip(tokens, [*words[1:], ""], strict=True)
        if token.kind in ("word", "quoted", "string") and after != "."
    )
    depths = bracket_depths(tokens)
    has_names = "WITH" in words
    found = []
    for where, word in enumerate(words):
        if word == "WHERE":
            tables = _tables(tokens, words, depths, where)
            conditions = [part for part in _conditions(tokens, words, depths, where) if is_wanted(part)]
            once = frozenset(name for name in (tables or {}).values() if named[name.lower()] == 1)
            # WITH gives names to queries: one is certainly that of a table only if it occurs once.
            if tables and conditions and (once.issuperset(tables.values()) if has_names else once):
                found.append(Filtered(tables, once, conditions))
    return found


def bracket_depths(tokens: Sequence[Token]) -> list[int]:
    """In how many brackets, or CASE expressions, each token is; brackets are outside of themselves."""
    found, depth = [], 0
    for token in tokens:
        word = token.upper
        depth -= word in (")", "]", "}", "END")
        found.append(depth)
        depth += word in ("(", "[", "{", "CASE")
    return found


def _tables(
    tokens: Sequence[Token], words: Sequence[str], depths: Sequence[int], where: int
) -> dict[str, str] | None:
    """The tables between FROM and WHERE by their qualifiers; None if there are other sources or joins."""
    begin = None
    for position in range(where - 1, -1, -1):
        word = words[position]
        if depths[position] > depths[where]:
            continue
        if depths[position] < depths[where] or word in _SETS | {"WHERE", ";"}:
            return None
        if begin is None and word == "FROM" and words[position - 1] != "DISTINCT":
            begin = position
        if word == "SELECT":
            break
    else:
        return None
    if begin is None:
        return None
    inside = [tokens[place] for place in range(begin + 1, where) if depths[place] == depths[where]]
    found = joined_tables(inside)
    return None if found is None else {qualifier: place.token.value for qualifier, place in found.items()}


class JoinedTable(NamedTuple):
    """A table in FROM, and whether an alias follows."""

    token: Token
    is_named: bool


def joined_tables(tokens: Sequence[Token]) -> dict[str, JoinedTable] | None:
    """The tables of inner joins, by the lower-case names that qualify their columns.

    `tokens` are those after FROM that are not in brackets. None if there are other sources or joins.
    """
    words = [token.upper for token in tokens]
    if not _OTHER_JOINS.isdisjoint(words):
        return None
    found: dict[str, JoinedTable] = {}
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1 : position + 3]
        if token.kind not in ("word", "quoted", "string"):
            return None
        length = 1
        if following and following[0].upper == "AS":
            length, following = 2, following[1:]
        is_named = bool(following) and is_alias(following[0])
        qualifier = token.value
        if is_named:
            qualifier, length = following[0].value, length + 1
        elif length == 2:
            return None
        if qualifier.lower() in found:
            return None
        found[qualifier.lower()] = JoinedTable(token, is_named)
        end = _join(words, position + length)
        if end is None:
            return None
        position = end
    return found


def _join(words: Sequence[str], position: int) -> int | None:
    """The position of the next table after one that ends at `position`; None if there is anything else."""
    if position < len(words) and words[position] in ("ON", "USING"):
        while position < len(words) and words[position] not in (",", "CROSS", "INNER", "JOIN"):
            position += 1
    if position == len(words) or words[position] == ",":
        return position + 1
    if words[position] in ("CROSS", "INNER"):
        position += 1
    is_join = position < len(words) and words[position] == "JOIN"
    return position + 1 if is_join else None


def _conditions(
    tokens: Sequence[Token], words: Sequence[str], depths: Sequence[int], where: int
) -> Iterator[Sequence[Token]]:
    """The operands of the ANDs after WHERE."""
    depth, end = depths[where], where + 1
    ends: list[int] = []
    is_between = is_disjunction = False
    while end < len(tokens) and depths[end] >= depth:
        word = words[end] if depths[end] == depth else ""
        if word in _AFTER_WHERE or word == ";":
            break
        is_disjunction |= word == "OR"
        if word == "AND" and not is_between:
            ends.append(end)
        is_between = word == "BETWEEN" or (is_between and word != "AND")
        end += 1
    if is_disjunction:
        ends.clear()
    begin = where + 1
    for last in [*ends, end]:
        yield tokens[begin:last]
        begin = last + 1


def _may_be_left(tokens: Sequence[Token]) -> bool:
    return not _WANTED.isdisjoint(token.upper for token in tokens)
