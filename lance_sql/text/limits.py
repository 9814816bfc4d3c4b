"""Parses queries with a LIMIT from their tokens: any rows, or the first in the order of a column."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement, is_alias
from lance_sql.text.tokens import Token, table_positions

#: Keywords that make results depend on several rows, or that only an engine can evaluate.
_OTHERS: Final = frozenset(
    {
        "ALL", "ANTI", "ANY", "ASOF", "AT", "COLLATE", "COLUMNS", "CROSS", "DISTINCT", "EXCEPT", "EXISTS",
        "EXPLODE", "FETCH", "FILTER", "FULL", "GROUP", "HAVING", "INNER", "INTERSECT", "INTO", "JOIN",
        "LATERAL", "LEFT", "NATURAL", "OVER", "PERCENT", "PIVOT", "POSITIONAL", "QUALIFY", "RECURSIVE",
        "RIGHT", "SAMPLE", "SEMI", "SOME", "TABLESAMPLE", "UNION", "UNNEST", "UNPIVOT", "USING", "VALUES",
        "WINDOW", "WITH",
    }
)  # fmt: skip
#: Keywords that may precede an opening parenthesis without being a function.
_BEFORE_BRACKETS: Final = frozenset(
    {"AND", "BETWEEN", "BY", "ILIKE", "IN", "LIKE", "NOT", "OR", "SELECT", "WHERE"}
)
#: Keywords whose value changes from statement to statement.
_CHANGING: Final = ("CURRENT_", "LOCAL")


class FirstRows(NamedTuple):
    """``SELECT ... FROM table [WHERE condition] ORDER BY column [DESC] [NULLS FIRST], ... LIMIT 9 OFFSET 5``.

    `key` is the column in ORDER BY, `source` the text between FROM and ORDER BY. `selected` and `tested` are
    the words of the SELECT list and of the condition; `rows` is the number of requested rows, including
    skipped ones. `nulls_first` is None if the text does not specify it.
    """

    column: str
    descending: bool
    nulls_first: bool | None
    rows: int
    selected: frozenset[str]
    tested: frozenset[str]
    key: str
    source: str

    @property
    def selects_all(self) -> bool:
        """Whether ``*`` is among the selected."""
        return "*" in self.selected

    def last_key(self, nulls_first: bool) -> str:
        """The query for the value of the ordering column in the last of the rows."""
        order = (
            f"{self.key} {'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        )
        return f"SELECT {self.key} FROM {self.source} ORDER BY {order} LIMIT 1 OFFSET {self.rows - 1}"


class Limited(NamedTuple):
    """``SELECT ... FROM table [WHERE condition] LIMIT 9 OFFSET 5``, each row of which is a row of the table.

    `rows` is the number of rows that it returns at most, `skipped` that of the rows before them; `tested`:
    there is a condition.
    """

    rows: int
    skipped: int
    tested: bool


@once_per_statement
def limited(statement: Statement) -> Limited | None:
    """The LIMIT of a query for any rows of a table; None for other statements, and if uncertain."""
    tokens, words = _words(statement)
    if not words or words[0] not in ("SELECT", "FROM") or "ORDER" in words:
        return None
    if words.count("SELECT") != (words[0] == "SELECT") or not _is_one(words, "FROM", "LIMIT"):
        return None
    start, limit = words.index("FROM"), words.index("LIMIT")
    if start > limit or sorted(table_positions(tokens)) != [start + 1] or not _is_plain(tokens, words):
        return None
    source, rows = _source(tokens, words, start + 1, limit), _rows(tokens[limit + 1 :])
    return None if source is None or not rows else Limited(len(rows), rows.start, source[1] < limit)


@once_per_statement
def first_rows(statement: Statement) -> FirstRows | None:
    """The LIMIT of a query for the first rows in an order; None for other statements, and if uncertain."""
    tokens, words = _words(statement)
    if not words or words[0] != "SELECT" or not _is_one(words, "SELECT", "FROM", "ORDER", "LIMIT"):
        return None
    if not _is_plain(tokens, words):
        return None
    places = sorted(table_positions(tokens))
    start, order, limit = words.index("FROM"), words.index("ORDER"), words.index("LIMIT")
    if places != [start + 1] or not start < order < limit or words[order + 1] != "BY":
        return None
    source = _source(tokens, words, start + 1, order)
    rows = _rows(tokens[limit + 1 :])
    if source is None or not rows:
        return None
    aliases, where = source
    found = _key(tokens[order + 2 : limit], aliases)
    if found is None or _renames(tokens[1:start], found[0].value.lower()):
        return None
    column, length, descending, nulls_first = found
    key_tokens = tokens[order + 2 : order + 2 + length]
    return FirstRows(
        column.value,
        descending,
        nulls_first,
        rows.stop,
        frozenset(token.value.lower() for token in tokens[1:start]),
        frozenset(token.value.lower() for token in tokens[where:order]),
        statement.original[key_tokens[0].start : key_tokens[-1].end],
        statement.original[tokens[start + 1].start : tokens[order - 1].end],
    )


def _words(statement: Statement) -> tuple[list[Token], list[str]]:
    """The tokens of a statement, and these in upper case."""
    tokens = list(statement.tokens)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    return tokens, [token.upper for token in tokens]


def _is_one(words: list[str], *once: str) -> bool:
    return all(words.count(word) == 1 for word in once)


def _is_plain(tokens: list[Token], words: list[str]) -> bool:
    """Whether no function is called, and only the order and the limit depend on several rows."""
    for position, (token, word) in enumerate(zip(tokens, words, strict=True)):
        if token.kind in ("parameter", "dollar") or token.text in ("$", "[", "{"):
            return False
        if word in _OTHERS or word.startswith(_CHANGING):
            return False
        is_call = token.text == "(" and position and tokens[position - 1].kind in ("word", "quoted")
        if is_call and words[position - 1] not in _BEFORE_BRACKETS:
            return False
    return True


def _source(tokens: list[Token], words: list[str], table: int, end: int) -> tuple[set[str], int] | None:
    """The names that may qualify columns, and the start of the condition; None for several tables."""
    if tokens[table].kind not in ("word", "string", "quoted"):
        return None
    names, following = {tokens[table].value.lower()}, table + 1
    if following < end and words[following] == "AS":
        following += 1
    if following < end and is_alias(tokens[following]):
        names = {tokens[following].value.lower()}
        following += 1
    elif following != table + 1:
        return None
    if following == end:
        return names, end
    return (names, following + 1) if words[following] == "WHERE" else None


def _key(tokens: list[Token], tables: set[str]) -> tuple[Token, int, bool, bool | None] | None:
    """The first column in ORDER BY, its number of tokens, and its direction."""
    length = 3 if len(tokens) > 2 and tokens[1].text == "." else 1
    if not tokens or tokens[length - 1].kind not in ("word", "quoted"):
        return None
    if length == 3 and tokens[0].value.lower() not in tables:
        return None
    said = []
    for token in tokens[length:]:
        if token.text == ",":
            break
        said.append(token.upper)
    direction = said[:1] if said[:1] in (["ASC"], ["DESC"]) else []
    nulls = said[len(direction) :]
    if nulls not in ([], ["NULLS", "FIRST"], ["NULLS", "LAST"]):
        return None
    return tokens[length - 1], length, direction == ["DESC"], nulls[1] == "FIRST" if nulls else None


def _renames(selected: list[Token], column: str) -> bool:
    """Whether the SELECT list may contain an alias equal to the name of the column."""
    for position, token in enumerate(selected):
        if token.kind not in ("word", "quoted", "string") or token.value.lower() != column:
            continue
        before = selected[position - 1] if position else None
        if before is not None and before.kind not in ("other", "operator"):
            return True
        if before is not None and before.text in (")", "]", "}"):
            return True
    return False


#: The end of a query that skips rows.
_OFFSET: Final = re.compile(r"\s+OFFSET\s+\d+\s*;?\s*$", re.IGNORECASE)


def without_offset(text: str) -> str | None:
    """A query that ends with ``OFFSET 5`` without it; None if it does not."""
    found = _OFFSET.search(text)
    return None if found is None else text[: found.start()]


def _rows(tokens: list[Token]) -> range | None:
    """The rows of ``10`` or ``10 OFFSET 5``."""
    words = [token.upper for token in tokens]
    if len(words) not in (1, 3) or words[1:2] not in ([], ["OFFSET"]):
        return None
    numbers = [tokens[0].text, *(token.text for token in tokens[2:])]
    if not all(number.isdecimal() for number in numbers):
        return None
    count, skipped = int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else 0
    return range(skipped, skipped + count)
