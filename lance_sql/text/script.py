"""Several statements in one text."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from lance_engine.errors import InvalidArgumentError

from lance_sql.errors import SqlError
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, tokenize

#: Texts whose statements are kept, with what was found in them, and the maximum length of such a text.
_CACHED_TEXTS: Final = 32
_LONGEST_KEPT: Final = 8192
#: The names of arguments whose value may be the time at which the statement runs.
_TIMES: Final = re.compile("timestamp|as_of", re.IGNORECASE)


def split(text: str) -> list[Statement]:
    """The statements of `text`, separated by semicolons; empty ones are left out.

    A text without statements returns a single empty statement.
    """
    if not isinstance(text, str):
        raise InvalidArgumentError(f"A statement must be SQL text, not {type(text).__name__}")
    return list(_cached(text) if _is_cached(text) else _split(text))


def _is_cached(text: str) -> bool:
    """Whether the statements of a text depend on nothing else: ``AT (TIMESTAMP => now())`` is the time."""
    if len(text) > _LONGEST_KEPT:
        return False
    return not (("=>" in text or ":=" in text) and _TIMES.search(text))


def _split(text: str) -> list[Statement]:
    statements: list[Statement] = []
    part: list[Token] = []
    for token in tokenize(text):
        if token.text == ";":
            statements += _joined(text, part)
            part = []
        else:
            part.append(token)
    return statements + _joined(text, part) or [Statement(text, [])]


#: Statements are immutable, and nothing that they keep depends on a session: all share them.
_cached = lru_cache(_CACHED_TEXTS)(_split)


def statements(text: str) -> list[Statement]:
    """As `split`, but SqlError if there is no statement."""
    statements = split(text)
    if not statements[-1].tokens:
        raise SqlError("The text contains no SQL statement", remedy="Pass a statement such as SELECT 1")
    return statements


def _joined(text: str, tokens: list[Token]) -> list[Statement]:
    if not tokens:
        return []
    start = tokens[0].start
    moved = tokens if start == 0 else [token._replace(start=token.start - start) for token in tokens]
    return [Statement(text[start : tokens[-1].end], moved)]
