"""A SQL tokenizer that is sufficient to find tables in any dialect."""

from __future__ import annotations

import re
from typing import NamedTuple

from lance_sql.text.kinds import NAMED_TABLE

#: Constants of a list after IN: one token each would take longer than the statement.
_CONSTANT = r"(?:-?\d[\w.]*+|'(?:[^']|'')*+')"
_BEHIND_IN = r"(?:(?<=[iI][nN]\()|(?<=[iI][nN]\ \())"
_CONSTANTS = rf"{_BEHIND_IN}\s*+(?:{_CONSTANT}\s*+,\s*+){{32,}}+{_CONSTANT}(?=\s*+\))"

_TOKENS = re.compile(
    rf"""
    (?P<constants>{_CONSTANTS})
  | (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^']|'')*')
  | (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*')
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
  | (?P<parameter>\?)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d[\w.]*)
  | (?P<operator>=>|:=)
  | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)


_NO_KEYWORDS = {"string", "escaped", "quoted", "constants"}


class Token(NamedTuple):
    """A token and its position in the text; `kind` is a group name of the pattern above."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def value(self) -> str:
        """The token without its quotes; a word unchanged."""
        if self.kind in ("string", "quoted"):
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text

    @property
    def upper(self) -> str:
        """The keyword that an unquoted word may be; empty for other tokens except punctuation."""
        return "" if self.kind in _NO_KEYWORDS else self.text.upper()


def tokenize(text: str) -> list[Token]:
    """The tokens of `text` without spaces and comments."""
    return [
        Token(str(match.lastgroup if match.lastgroup != "tag" else "dollar"), match.group(), match.start())
        for match in _TOKENS.finditer(text)
        if match.lastgroup != "space"
    ]


def quote(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def as_name(name: str) -> str:
    """`name` as an SQL identifier, quoted unless it is a plain word."""
    return name if name.isidentifier() else quote(name)


def as_string(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def as_table(name: str) -> str:
    """`name` as a table of a statement: the path of a dataset, or a name that may have dots."""
    is_path = name.endswith(".lance") or "/" in name
    return as_string(name) if is_path else ".".join(map(as_name, name.split(".")))


def spellings(name: str) -> set[str]:
    """`name`, and what DataFusion looks up when a statement contains it without quotes."""
    return {name, name.lower()}


def closing(tokens: list[Token], position: int) -> int | None:
    """The position of the matching closing bracket, None if it is missing."""
    depth = 0
    for index in range(position, len(tokens)):
        if tokens[index].text in ("(", "[", "{"):
            depth += 1
        elif tokens[index].text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return index
    return None


def arguments(tokens: list[Token]) -> list[list[Token]]:
    """The tokens between two brackets, split at commas."""
    arguments: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if token.text == "," and depth == 0:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return arguments


def table_positions(tokens: list[Token]) -> set[int]:
    """The positions where only a table can occur.

    They follow FROM and JOIN, commas between tables, and keywords of single-table statements.
    """
    table_positions: set[int] = set()
    clauses = [False]  # for each open bracket: whether the position is between FROM and the end of its clause
    expected = False
    for position, token in enumerate(tokens):
        word = token.upper
        if token.text in ("(", "[", "{"):
            # Parentheses in place of a table contain a query or a join; other parentheses contain values.
            clauses.append(expected)
            continue
        if expected and ":" in [near.text for near in tokens[position : position + 2]]:
            continue  # FROM alias: t
        begins_query = word in NAMED_TABLE and _begins_query(tokens, position)
        if expected and token.kind == "word" and word in _QUERIES:
            expected = False  # a query in brackets, also where a table is called "select"
        elif expected and word not in _TABLE_PREFIXES and not begins_query:
            table_positions.add(position)
            expected = False
        if token.text in (")", "]", "}"):
            clauses = clauses[:-1] or [False]
        elif word in ("FROM", "JOIN"):
            if position == 0 or tokens[position - 1].upper != "DISTINCT":  # IS DISTINCT FROM a value
                clauses[-1] = expected = True
        elif word in ("DESCRIBE", "SUMMARIZE") or begins_query:
            expected = tokens[position + 1 : position + 2] != [] and tokens[position + 1].upper != "FROM"
        elif token.text == ",":
            expected = clauses[-1]
        elif word in _AFTER_FROM:
            clauses[-1] = False
    return table_positions


def _begins_query(tokens: list[Token], position: int) -> bool:
    """Whether a keyword is the first of a statement, or of a PIVOT in brackets."""
    if position == 0:
        return True
    following = tokens[position + 1 : position + 2]
    return (
        tokens[position].upper in ("PIVOT", "UNPIVOT")
        and tokens[position - 1].text == "("
        and bool(following)
        and following[0].kind in ("word", "quoted", "string")
    )


#: Keywords between FROM or JOIN and the table.
_TABLE_PREFIXES = {"LATERAL", "ONLY", "TABLE"}

#: Keywords that begin a query in place of a table.
_QUERIES = {"FROM", "SELECT", "VALUES", "WITH"}

#: Keywords that end the list of tables.
_AFTER_FROM = {
    "EXCEPT", "FETCH", "GROUP", "HAVING", "INTERSECT", "LIMIT", "OFFSET", "ORDER", "QUALIFY", "SELECT",
    "UNION", "WHERE", "WINDOW", "WITH",
}  # fmt: skip
