"""Several statements in one text."""

from __future__ import annotations

from lance_sql.text.tokens import Token, tokenize


def split(text: str) -> list[str]:
    """The statements of `text`, which semicolons separate; empty ones are left out."""
    statements: list[str] = []
    part: list[Token] = []
    for token in tokenize(text):
        if token.text == ";":
            statements += _joined(text, part)
            part = []
        else:
            part.append(token)
    return statements + _joined(text, part)


def _joined(text: str, tokens: list[Token]) -> list[str]:
    return [text[tokens[0].start : tokens[-1].end]] if tokens else []
