"""What a SQL text says about Lance tables, read off its tokens.

Both engines get the user's text unchanged but for three things that only this layer understands: ``AT
(VERSION => n)`` behind a table, ``lance_scan('path')``, and ``?`` parameters, which become ``$1``, ``$2`` ...
Tokens suffice for that: a full parse would have to know every dialect, and a misread token costs at most one
unused registration.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lance_engine.errors import UnsupportedFeatureError

#: Columns that every Lance dataset has besides its data: a table declares them when the statement names them.
SYSTEM_COLUMNS = ("_rowid", "_rowaddr")

_TOKENS = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
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

#: Words right before a table.
_BEFORE_TABLE = {"FROM", "JOIN", "DESCRIBE", "SUMMARIZE"}

#: Words that can follow a table and are no alias for it.
_AFTER_TABLE = re.compile(
    "ANTI|ASOF|CROSS|EXCEPT|FETCH|FULL|GROUP|HAVING|INNER|INTERSECT|JOIN|LATERAL|LEFT|LIMIT|NATURAL|OFFSET|ON|"
    "ORDER|POSITIONAL|QUALIFY|RIGHT|SELECT|SEMI|TABLESAMPLE|UNION|USING|WHERE|WINDOW"
)


@dataclass(frozen=True, slots=True)
class _Token:
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
        return "" if self.kind in ("string", "quoted") else self.text.upper()


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in the text that may be a Lance table.

    `name` is what the engine will look up, `location` the path or table name as written. `certain`: the name
    stands where only a table can, so that a missing dataset is an error. `quoted`: written as a string or
    quoted name.
    """

    name: str
    location: str
    version: int | None
    certain: bool
    quoted: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A SQL text ready for an engine, with the Lance references and system columns it names."""

    text: str
    references: tuple[Reference, ...]
    system_columns: tuple[str, ...]


def quote(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def versioned_name(location: str, version: int | None) -> str:
    """The name under which an engine knows the dataset at `location` at one version."""
    return location if version is None else f"{location}@{version}"


def parse(text: str) -> Statement:
    """Read the references of `text`. Raises `UnsupportedFeatureError` for time travel by tag or time."""
    tokens = [
        _Token(str(match.lastgroup if match.lastgroup != "tag" else "dollar"), match.group(), match.start())
        for match in _TOKENS.finditer(text)
        if match.lastgroup != "space"
    ]
    references: dict[str, Reference] = {}
    edits: list[tuple[int, int, str]] = []
    parameters = 0
    position = 0
    while position < len(tokens):
        token = tokens[position]
        consumed = 1
        if token.kind == "parameter":
            parameters += 1
            edits.append((token.start, token.end, f"${parameters}"))
        elif token.upper == "LANCE_SCAN":
            call = _table_function(tokens, position)
            if call is not None:
                reference, consumed = call
                references[reference.name] = reference
                edits.append((token.start, tokens[position + consumed - 1].end, quote(reference.name)))
        elif token.kind in ("string", "quoted", "word"):
            reference, consumed, edit = _table(tokens, position)
            known = references.get(reference.name)
            if known is None or not known.certain:
                references[reference.name] = reference
            if edit is not None:
                edits.append(edit)
        position += consumed
    words = {token.value.lower() for token in tokens if token.kind in ("word", "quoted")}
    return Statement(
        text=_apply(text, edits),
        references=tuple(references.values()),
        system_columns=tuple(column for column in SYSTEM_COLUMNS if column in words),
    )


def _apply(text: str, edits: list[tuple[int, int, str]]) -> str:
    pieces, last = [], 0
    for start, end, replacement in edits:
        pieces += [text[last:start], replacement]
        last = end
    return "".join([*pieces, text[last:]])


def _table(tokens: list[_Token], position: int) -> tuple[Reference, int, tuple[int, int, str] | None]:
    """The reference that starts at `position`, how many tokens it takes, and the edit it needs."""
    token = tokens[position]
    certain = position > 0 and tokens[position - 1].upper in _BEFORE_TABLE
    quoted = token.kind != "word"
    travel = _version_clause(tokens, position + 1)
    if travel is None:
        return Reference(token.value, token.value, None, certain, quoted), 1, None
    version, length = travel
    name = versioned_name(token.value, version)
    following = tokens[position + 1 + length] if position + 1 + length < len(tokens) else None
    alias = "" if following is not None and _is_alias(following) else f" AS {quote(token.value)}"
    edit = (token.start, tokens[position + length].end, quote(name) + alias)
    return Reference(name, token.value, version, certain, quoted), 1 + length, edit


def _is_alias(token: _Token) -> bool:
    return token.kind == "quoted" or (token.kind == "word" and not _AFTER_TABLE.fullmatch(token.upper))


def _version_clause(tokens: list[_Token], position: int) -> tuple[int, int] | None:
    """``AT (VERSION => n)`` at `position`: the version and the number of tokens."""
    shape = [token.upper for token in tokens[position : position + 6]]
    if shape[:2] != ["AT", "("] or len(shape) < 6 or shape[3] != "=>":
        return None
    if shape[2] in ("TAG", "TIMESTAMP", "BRANCH"):
        raise UnsupportedFeatureError(
            f"time travel by {shape[2].lower()} is not supported",
            remedy="Name the version: AT (VERSION => 3)",
        )
    if shape[2] != "VERSION" or not shape[4].isdigit() or shape[5] != ")":
        return None
    return int(shape[4]), 6


def _table_function(tokens: list[_Token], position: int) -> tuple[Reference, int] | None:
    """``lance_scan('path')`` or ``lance_scan('path', version => n)``: the reference, its number of tokens."""
    rest = tokens[position + 1 : position + 8]
    if len(rest) < 3 or rest[0].text != "(" or rest[1].kind != "string":
        return None
    location = rest[1].value
    if rest[2].text == ")":
        return Reference(location, location, None, True, True), 4
    argument = _version_argument(rest[2:])
    if argument is None:
        return None
    version, length = argument
    return Reference(versioned_name(location, version), location, version, True, True), 3 + length


def _version_argument(tokens: list[_Token]) -> tuple[int, int] | None:
    """``, n)`` or ``, version => n)`` or ``, version := n)``: the version and the number of tokens."""
    texts = [token.upper for token in tokens]
    if texts[:1] != [","]:
        return None
    skip = 3 if texts[1:2] == ["VERSION"] and texts[2:3] in (["=>"], [":="]) else 1
    if len(texts) > skip + 1 and texts[skip].isdigit() and texts[skip + 1] == ")":
        return int(texts[skip]), skip + 2
    return None
