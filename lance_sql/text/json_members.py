"""The member of a JSON document that an expression uses: ``payload->>'$.user.id'`` only needs ``user.id``.

What is not certainly such an expression uses the whole document.
"""

from __future__ import annotations

import re
from typing import Final

from lance_sql.text.tokens import Token

#: Functions of a document and a path, none of which looks at anything else of the document.
_FUNCTIONS: Final = frozenset(
    {
        "JSON_ARRAY_LENGTH", "JSON_EXISTS", "JSON_EXTRACT", "JSON_EXTRACT_PATH", "JSON_EXTRACT_PATH_TEXT",
        "JSON_EXTRACT_STRING", "JSON_KEYS", "JSON_TYPE", "JSON_VALUE",
    }
)  # fmt: skip
#: Paths through objects; an array is only used as a whole.
_PATH: Final = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z_0-9]*)+)(?:\[.*)?", re.DOTALL)
_KEY: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
#: Operators that bind less than ``->>``.
_COMPARISONS: Final = frozenset({"=", "==", "<>", "!=", "<", "<=", ">", ">="})
#: Words before and behind an operand of an operator that do not belong to it.
_BEFORE: Final = frozenset(
    {
        "AND", "BY", "CASE", "DISTINCT", "ELSE", "HAVING", "ON", "OR", "QUALIFY", "SELECT", "THEN", "WHEN",
        "WHERE",
    }
)  # fmt: skip
_BEHIND: Final = frozenset(
    {
        "AND", "AS", "ASC", "BETWEEN", "DESC", "ELSE", "END", "EXCEPT", "FROM", "GROUP", "HAVING", "ILIKE",
        "IN", "INTERSECT", "IS", "LIKE", "LIMIT", "NOT", "NULLS", "OFFSET", "OR", "ORDER", "QUALIFY", "THEN",
        "UNION", "WHEN", "WHERE",
    }
)  # fmt: skip
_OPERATORS: Final = frozenset("+-*/<>=~!@#%^&|`?:.")


def member_path(tokens: list[Token], position: int, *, functions: bool) -> tuple[str, ...]:
    """The member used of the document in the column at `position`; nothing if all of it may be used.

    `functions`: the functions for JSON are those of the engine, not others of the same names.
    """
    first = position
    while first >= 2 and tokens[first - 1].text == "." and tokens[first - 2].kind in ("word", "quoted"):
        first -= 2
    place = position + 1
    if functions and _begins_call(tokens, first) and _text(tokens, place) == ",":
        path = place + 1
        return _members(tokens, path) if _text(tokens, path + 1) == ")" else ()
    operator = _operator(tokens, place)
    path = place + len(operator)
    if operator == "->>" and _ends_before(tokens, first) and _ends_behind(tokens, path + 1):
        return _members(tokens, path)
    # ``->`` binds less than anything else.
    alone = _text(tokens, first - 1) in ("(", ",") or _word(tokens, first - 1) == "SELECT"
    if operator == "->" and alone:
        behind = _text(tokens, path + 1) in ("", ")", ",", ";") or _word(tokens, path + 1) in ("AS", "FROM")
        return _members(tokens, path) if behind else ()
    return ()


def _begins_call(tokens: list[Token], position: int) -> bool:
    """Whether a position is that of the first argument of a function for JSON."""
    return (
        _text(tokens, position - 1) == "("
        and _word(tokens, position - 2) in _FUNCTIONS
        and _text(tokens, position - 3) != "."
    )


def _members(tokens: list[Token], position: int) -> tuple[str, ...]:
    """The members to which a constant leads."""
    if position >= len(tokens) or tokens[position].kind != "string":
        return ()
    text = tokens[position].value
    if _KEY.fullmatch(text):
        return (text,)
    found = _PATH.fullmatch(text)
    return () if found is None else tuple(found[1][1:].split("."))


def _ends_before(tokens: list[Token], position: int) -> bool:
    """Whether what comes before a position is not part of an operand that begins there."""
    if position == 0 or _text(tokens, position - 1) in ("(", ","):
        return position > 0
    first = position - 1
    while first > 0 and _adjoins(tokens, first):
        first -= 1
    written = "".join(token.text for token in tokens[first:position])
    return _word(tokens, position - 1) in _BEFORE or written in _COMPARISONS


def _ends_behind(tokens: list[Token], position: int) -> bool:
    """Whether what comes from a position on is not part of an operand that ends before it."""
    if _text(tokens, position) in ("", ")", ",", ";", "]"):
        return True
    return _word(tokens, position) in _BEHIND or _operator(tokens, position) in _COMPARISONS


def _operator(tokens: list[Token], position: int) -> str:
    """The operator at a position: punctuation without spaces in it."""
    if _text(tokens, position) not in _OPERATORS and _text(tokens, position) != "=>":
        return ""
    last = position
    while last + 1 < len(tokens) and _adjoins(tokens, last + 1):
        last += 1
    return "".join(token.text for token in tokens[position : last + 1])


def _adjoins(tokens: list[Token], position: int) -> bool:
    """Whether a token continues an operator that the token before it begins."""
    before, token = tokens[position - 1], tokens[position]
    return before.text in _OPERATORS and token.text in _OPERATORS and before.end == token.start


def _text(tokens: list[Token], position: int) -> str:
    """The punctuation at a position; empty at the end."""
    if not 0 <= position < len(tokens):
        return ""
    token = tokens[position]
    return token.text if token.kind in ("operator", "other") else " "


def _word(tokens: list[Token], position: int) -> str:
    return tokens[position].upper if 0 <= position < len(tokens) and tokens[position].kind == "word" else ""
