"""Several statements in one text."""

from __future__ import annotations

from dataclasses import replace

from lance_engine.errors import InvalidArgumentError

from lance_sql.errors import SqlError
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, tokenize


def split(text: str) -> list[Statement]:
    """The statements of `text`, separated by semicolons; empty ones are left out.

    A text without statements returns a single empty statement.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"A statement must be SQL text, not {type(text).__name__}")
    statements: list[Statement] = []
    part: list[Token] = []
    for token in tokenize(text):
        if token.text == ";":
            statements += _joined(text, part)
            part = []
        else:
            part.append(token)
    return statements + _joined(text, part) or [Statement(text, [])]


def statements(text: str) -> list[Statement]:
    """As `split`, but SqlError if there is no statement."""
    found = split(text)
    if not found[-1].tokens:
        raise SqlError("The text contains no SQL statement", remedy="Pass a statement such as SELECT 1")
    return found


def _joined(text: str, tokens: list[Token]) -> list[Statement]:
    if not tokens:
        return []
    start = tokens[0].start
    moved = tokens if start == 0 else [replace(token, start=token.start - start) for token in tokens]
    return [Statement(text[start : tokens[-1].end], moved)]
