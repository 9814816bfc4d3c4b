"""``column IN (SELECT ...)`` as a condition on one table of a join, evaluated before the join.

DataFusion tests such a condition on the rows of the whole join. If the table is not the largest one, it is
cheaper to exclude its other rows from the join: ``FROM a, b WHERE a.x IN (SELECT ...)`` has the same rows as
``FROM (SELECT * FROM a WHERE a.x IN (SELECT ...)) AS a, b WHERE TRUE``. Only simple texts are changed: inner
joins of tables, whose conditions are combined with AND.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from lance_sql.text.tokens import Token, closing, quote, tokenize

#: Keywords outside parentheses that mean a text is not just inner joins with conditions that must all be
#: true.
_OTHERS = frozenset(
    {
        "ANTI", "CASE", "EXCEPT", "FULL", "INTERSECT", "INTO", "LATERAL", "LEFT", "NATURAL", "OR", "OUTER",
        "PIVOT", "QUALIFY", "RIGHT", "SEMI", "TABLESAMPLE", "UNION", "UNPIVOT", "USING", "XOR",
    }
)  # fmt: skip
_BEHIND_WHERE = frozenset({"GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "WINDOW", "FOR", ";"})


class JoinedTable(NamedTuple):
    """A table that a text may name: its columns, and its row count."""

    columns: Collection[str]
    rows: int


class _Source(NamedTuple):
    """A table between FROM and WHERE: the start and end of its text, and its name in the query."""

    start: int
    end: int
    written: str
    alias: str
    table: JoinedTable


class _Condition(NamedTuple):
    start: int
    end: int
    source: _Source
    subquery: str


def semi_joins_first(text: str, tables: Mapping[str, JoinedTable], is_query: Callable[[str], bool]) -> str:
    """`text` with such conditions moved to smaller tables; unchanged without such conditions.

    `tables` are the tables that the text may name, by unquoted name. `is_query` decides whether a text is a
    standalone query, which a correlated subquery is not.
    """
    edits: dict[tuple[int, int], str] = {}
    by_source: dict[int, list[_Condition]] = {}
    for condition in _conditions(text, tables):
        by_source.setdefault(condition.source.start, []).append(condition)
    for found in by_source.values():
        source = found[0].source
        kept = [condition for condition in found if is_query(condition.subquery)]
        if kept:
            where = " AND ".join(text[condition.start : condition.end] for condition in kept)
            name = quote(source.alias)
            edits[source.start, source.end] = (
                f"(SELECT * FROM {source.written} AS {name} WHERE {where}) AS {name}"
            )
            edits.update(dict.fromkeys(((condition.start, condition.end) for condition in kept), "TRUE"))
    for (start, end), instead in sorted(edits.items(), reverse=True):
        text = text[:start] + instead + text[end:]
    return text


def _conditions(text: str, tables: Mapping[str, JoinedTable]) -> Iterator[_Condition]:
    tokens = tokenize(text)
    if not tokens or tokens[0].upper != "SELECT" or any(token.kind == "parameter" for token in tokens):
        return
    outer = list(_outside_brackets(tokens))
    words = [tokens[index].upper for index in outer]
    if not _OTHERS.isdisjoint(words) or words.count("FROM") != 1 or words.count("WHERE") != 1:
        return
    begin, where = words.index("FROM"), words.index("WHERE")
    end = next((at for at, word in enumerate(words) if at > where and word in _BEHIND_WHERE), len(outer))
    last = outer[end] if end < len(outer) else len(tokens)
    sources = _sources(tokens, outer[begin] + 1, outer[where], tables)
    if sources is None or len({source.alias for source in sources}) < len(sources):
        return
    for first, behind in _conjuncts(tokens, outer[where] + 1, last):
        condition = _condition(text, tokens[first:behind], sources)
        if condition is not None and any(
            source.table.rows > condition.source.table.rows for source in sources
        ):
            yield condition


def _outside_brackets(tokens: list[Token]) -> Iterator[int]:
    """The positions of the tokens outside parentheses, including the parentheses."""
    depth = 0
    for index, token in enumerate(tokens):
        depth -= token.text in (")", "]", "}")
        if depth == 0:
            yield index
        depth += token.text in ("(", "[", "{")


def _sources(
    tokens: list[Token], begin: int, end: int, tables: Mapping[str, JoinedTable]
) -> list[_Source] | None:
    """The joined tables; None if something else is joined."""
    found: list[_Source] = []
    position = begin
    while position < end:
        token = tokens[position]
        if token.kind not in ("word", "quoted", "string") or (table := _meant(token, tables)) is None:
            return None
        last, alias = position, token
        if tokens[last + 1].upper == "AS":
            last += 2
            alias = tokens[last]
        elif tokens[last + 1].kind == "quoted" or (
            tokens[last + 1].kind == "word" and tokens[last + 1].upper not in _BEHIND_TABLE
        ):
            last += 1
            alias = tokens[last]
        if alias.kind not in ("word", "quoted", "string") or last >= end:
            return None
        found.append(_Source(token.start, tokens[last].end, token.text, _name(alias), table))
        position = last + 1
        if position < end and tokens[position].upper == "ON":
            position = _next_source(tokens, position, end)
        if position == end:
            return found
        if tokens[position].upper in ("INNER", "CROSS"):
            position += 1
        if tokens[position].upper not in (",", "JOIN"):
            return None
        position += 1
    return None


#: Tokens that may follow a table without an alias.
_BEHIND_TABLE = frozenset({"ON", "JOIN", "INNER", "CROSS", "WHERE"})


def _next_source(tokens: list[Token], position: int, end: int) -> int:
    """The end of the join condition that starts at `position`."""
    while position < end and tokens[position].upper not in ("JOIN", "INNER", "CROSS", ","):
        behind = closing(tokens, position) if tokens[position].text in ("(", "[", "{") else position
        position = end if behind is None else behind + 1
    return position


def _conjuncts(tokens: list[Token], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The conditions between two positions that are combined with AND."""
    between, position, first = False, begin, begin
    while position < end:
        word = tokens[position].upper
        if word == "BETWEEN":
            between = True
        elif word == "AND":
            if not between:
                yield first, position
                first = position + 1
            between = False
        elif word in ("(", "[", "{"):
            position = closing(tokens, position) or end
        position += 1
    yield first, end


def _condition(text: str, tokens: list[Token], sources: list[_Source]) -> _Condition | None:
    """``column IN (SELECT ...)`` with the table of the column."""
    opens = next((at for at, token in enumerate(tokens) if token.text == "("), 0)
    if opens == 0 or opens + 1 >= len(tokens) or closing(tokens, opens) != len(tokens) - 1:
        return None
    *column, word = tokens[:opens]
    if word.upper != "IN" or tokens[opens + 1].upper != "SELECT":
        return None
    if any(token.kind not in ("word", "quoted") for token in column[::2]):
        return None
    names = [_name(token) for token in column[::2]]
    if len(column) == 3 and column[1].text == "." and not any(names[0] in s.table.columns for s in sources):
        holders = [source for source in sources if source.alias == names[0]]
    elif len(column) == 1:
        holders = [source for source in sources if names[0] in source.table.columns]
    else:
        return None
    if len(holders) != 1 or names[-1] not in holders[0].table.columns:
        return None
    subquery = text[tokens[opens + 1].start : tokens[-1].start]
    return _Condition(tokens[0].start, tokens[-1].end, holders[0], subquery)


def _meant(token: Token, tables: Mapping[str, JoinedTable]) -> JoinedTable | None:
    return tables.get(_name(token))


def _name(token: Token) -> str:
    """The name that DataFusion looks up: unquoted words are converted to lower case."""
    return token.value.lower() if token.kind == "word" else token.value
