"""The tokens of a SQL text: enough to find tables in it, whatever the dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Constants of a list behind IN, so many that one token each would take longer than the statement.
_CONSTANT = r"(?:-?\d[\w.]*+|'(?:[^']|'')*+')"
_BEHIND_IN = r"(?:(?<=[iI][nN]\()|(?<=[iI][nN]\ \())"
_CONSTANTS = rf"{_BEHIND_IN}\s*+(?:{_CONSTANT}\s*+,\s*+){{32,}}+{_CONSTANT}(?=\s*+\))"

_TOKENS = re.compile(
    rf"""
    (?P<constants>{_CONSTANTS})
  | (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^']|'')*')
  | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<parameter>\?)
  | (?P<word>[^\W\d]\w*)
  | (?P<number>\d[\w.]*)
  | (?P<operator>=>|:=)
  | (?P<other>.)
    """,
    re.DOTALL | re.VERBOSE,
)


_NO_KEYWORDS = {"string", "quoted", "constants"}


@dataclass(frozen=True, slots=True)
class Token:
    """One token and its place in the text; `kind` is the name of a group of the pattern above."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def value(self) -> str:
        """The token without its quotes; a word as it stands."""
        if self.kind in ("string", "quoted"):
            quote = self.text[0]
            return self.text[1:-1].replace(quote * 2, quote)
        return self.text

    @property
    def upper(self) -> str:
        """The keyword a bare word may be; empty for everything else but punctuation."""
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


def spellings(name: str) -> set[str]:
    """`name`, and what DataFusion looks up when a statement has it without quotes."""
    return {name, name.lower()}


def closing(tokens: list[Token], position: int) -> int | None:
    """Where the bracket that opens at `position` is closed, None if it is not."""
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
    """The tokens between two brackets, cut at their commas."""
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
    """The places where only a table can stand.

    They are behind FROM and JOIN, behind commas between tables, and behind statements of one table.
    """
    found: set[int] = set()
    clauses = [False]  # for each open bracket: whether we are between FROM and the end of its clause
    expected = False
    for position, token in enumerate(tokens):
        word = token.upper
        if token.text in ("(", "[", "{"):
            # Brackets in place of a table hold a query or a join, brackets elsewhere hold values.
            clauses.append(expected)
            continue
        if expected and word not in _TABLE_PREFIXES:
            found.add(position)
            expected = False
        if token.text in (")", "]", "}"):
            clauses = clauses[:-1] or [False]
        elif word in ("FROM", "JOIN"):
            if position == 0 or tokens[position - 1].upper != "DISTINCT":  # IS DISTINCT FROM a value
                clauses[-1] = expected = True
        elif word in ("DESCRIBE", "SUMMARIZE") or (word in NAMED_TABLE and position == 0):
            expected = tokens[position + 1 : position + 2] != [] and tokens[position + 1].upper != "FROM"
        elif token.text == ",":
            expected = clauses[-1]
        elif word in _AFTER_FROM:
            clauses[-1] = False
    return found


#: Words that begin a statement, and are followed by a table that takes no alias.
NAMED_TABLE = {"COPY", "DESC", "DESCRIBE", "PIVOT", "SUMMARIZE", "TABLE", "UNPIVOT"}

#: Words between FROM or JOIN and the table.
_TABLE_PREFIXES = {"LATERAL", "ONLY", "TABLE"}

#: Words that end the list of tables.
_AFTER_FROM = {
    "EXCEPT", "FETCH", "GROUP", "HAVING", "INTERSECT", "LIMIT", "OFFSET", "ORDER", "QUALIFY", "SELECT",
    "UNION", "WHERE", "WINDOW", "WITH",
}  # fmt: skip
