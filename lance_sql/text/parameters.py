"""Replaces parameters of a statement, such as ``?``, ``$1`` and ``$name``, by constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lance_sql.text.tokens import Token

#: By the position of a parameter in the text: the number of its tokens, and the tokens of its value.
Constants = Mapping[int, tuple[int, Sequence[Token]]]


def constants(tokens: Sequence[Token], params: Sequence[Any] | Mapping[str, Any] | None) -> Constants:
    """The strings and whole numbers that parameters of a statement stand for; others are left out."""
    found: dict[int, tuple[int, Sequence[Token]]] = {}
    if not isinstance(params, Sequence | Mapping):
        return found
    marks = 0
    for position, token in enumerate(tokens):
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if following is not None and following.start != token.end:
            following = None
        value, length = None, 1
        if token.kind == "parameter":
            if isinstance(params, Sequence) and marks < len(params):
                value = params[marks]
            marks += 1
            if following is not None and following.kind == "number":
                continue
        elif token.text == "$" and token.kind == "other" and following is not None:
            value, length = _numbered_or_named(following, params), 2
        written = _written(value, token.start)
        if written:
            found[token.start] = length, written
    return found


def with_constants(tokens: Sequence[Token], values: Constants) -> list[Token]:
    """Tokens of the statement with constants instead of parameters, where these are known."""
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        length, written = values.get(tokens[position].start, (1, tokens[position : position + 1]))
        found += written
        position += length
    return found


def _numbered_or_named(token: Token, params: Sequence[Any] | Mapping[str, Any]) -> Any:
    if isinstance(params, Mapping):
        return params.get(token.text)
    if token.kind != "number" or not token.text.isdecimal() or not 0 < int(token.text) <= len(params):
        return None
    return params[int(token.text) - 1]


def _written(value: Any, start: int) -> Sequence[Token]:
    """A constant as tokens; nothing for values that are neither strings nor whole numbers."""
    if type(value) is str:
        return [Token("string", "'" + value.replace("'", "''") + "'", start)]
    if type(value) is int:
        sign = [Token("other", "-", start)] if value < 0 else []
        return [*sign, Token("number", str(abs(value)), start)]
    return ()
