"""Tests of strings for patterns, in the simplest form that means the same."""

from __future__ import annotations

from lance_engine.arrow_values import scalar
from lance_engine.errors import InvalidFilterError
from lance_engine.expr import build
from lance_engine.expr.tree import Literal, Match, Node

#: Letters that are also the lower case of İ, of the sign for kelvin, and of ſ.
_CASES_ELSEWHERE = frozenset("iks")


def matching(kind: str, operand: Node, pattern: str, escape: str | None = None) -> Node:
    """The test of a string for a pattern; `kind` as for `Match`."""
    return build.folded(_match(kind, operand, pattern, escape))


def implied(kind: str, operand: Node, pattern: str, escape: str | None = None) -> Node:
    """A test that every string passes that matches a LIKE or ILIKE pattern: one that kernels can make.

    Each ``_`` becomes ``%``, and so does what ILIKE may find as a character outside of ASCII.
    """
    implied_pattern: list[str] = []
    for special, character in _pattern_characters(pattern, escape):
        if not special and (kind == "like" or has_only_ascii_cases(character)):
            implied_pattern.append(f"\\{character}" if character in "%_\\" else character)
        elif implied_pattern[-1:] != ["%"]:
            implied_pattern.append("%")
    return matching(kind, operand, "".join(implied_pattern), "\\")


def has_only_ascii_cases(text: str) -> bool:
    """Whether text has ASCII characters only, whose other cases are ASCII as well."""
    return text.isascii() and _CASES_ELSEWHERE.isdisjoint(text.lower())


def _match(kind: str, operand: Node, pattern: str, escape: str | None) -> Node:
    if kind not in ("like", "ilike"):
        return Match(kind, operand, pattern)
    if escape is not None and len(escape) > 1:
        raise InvalidFilterError(
            f"The escape {escape!r} must be one character", remedy="Use a single character"
        )
    characters = _pattern_characters(pattern, escape)
    wild = [special for special, _ in characters]
    text = "".join(character for _, character in characters)
    if kind == "like" and not any(wild):
        return build.compare("=", operand, Literal(scalar(text)))
    if kind == "like" and "_" not in (c for special, c in characters if special) and not any(wild[1:-1]):
        if not wild[0]:
            return Match("starts_with", operand, text[:-1])
        return Match("contains", operand, text[1:-1]) if wild[-1] else Match("ends_with", operand, text[1:])
    canonical = "".join(c if special or c not in "%_\\" else f"\\{c}" for special, c in characters)
    return Match(kind, operand, canonical)


def _pattern_characters(pattern: str, escape: str | None) -> list[tuple[bool, str]]:
    """Each character of a LIKE pattern with whether it is a wildcard."""
    pattern_characters: list[tuple[bool, str]] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            literal = next(characters, None)
            if literal is None:
                raise InvalidFilterError(
                    f"The pattern {pattern!r} ends with its escape character", remedy="Remove it"
                )
            pattern_characters.append((False, literal))
        else:
            pattern_characters.append((character in "%_", character))
    return pattern_characters
