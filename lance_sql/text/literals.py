"""Literals and parameters that the parser of statements misreads, written so that it agrees with DuckDB."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from lance_sql.text.tokens import Token, quote
from lance_sql.types.kinds import CONSTANT_TYPES

_WITH_ZONE: Final = (["TIME", "WITH", "TIME", "ZONE"], ["TIMESTAMP", "WITH", "TIME", "ZONE"])


def literal_edits(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Replacements, by the positions of characters.

    ``DATE '2026-01-31'::VARCHAR`` gets brackets around the date: the parser would cast the text first.
    ``X'0A'`` becomes a cast, and a name in backquotes one in quotation marks.
    """
    words = [token.upper for token in tokens]
    for place, token in enumerate(tokens):
        if token.kind == "quoted" and token.text[:1] == "`":
            yield token.start, token.end, quote(token.value)
        if token.kind != "string" or place == 0:
            continue
        before = tokens[place - 1]
        if words[place - 1] == "X" and before.end == token.start:
            if re.fullmatch("([0-9A-Fa-f]{2})*", token.value):
                escaped = "".join(f"\\x{token.value[at : at + 2]}" for at in range(0, len(token.value), 2))
                yield before.start, token.end, f"('{escaped}'::BLOB)"
        elif words[place + 1 : place + 3] == [":", ":"]:
            long = words[max(place - 4, 0) : place] in _WITH_ZONE
            if long or words[place - 1] in CONSTANT_TYPES:
                first = tokens[place - 4] if long else before
                yield first.start, first.start, "("
                yield token.end, token.end, ")"


def parameter_edits(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Replacements of ``?`` by ``$1``, ``$2`` ..., with a space behind these and ``$name``.

    The parser takes ``$1,$`` for a quotation mark.
    """
    number = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind == "parameter":
            number += 1
            yield token.start, token.end, f"${number} "
        elif before is not None and before.text == "$" and before.end == token.start:
            yield token.end, token.end, " "
