"""What strings in which a regular expression is found have in common, as a LIKE pattern."""

from __future__ import annotations

from typing import Final

_QUANTIFIERS: Final = "*+?{"
#: Characters with a meaning that is not understood here, unless a backslash is in front of them.
_SPECIAL: Final = frozenset("^$()|]}" + _QUANTIFIERS)
_CLASSES: Final = frozenset("dDsSwW")


def implied_pattern(regex: str) -> str | None:
    """A LIKE pattern, with backslashes as escapes, that all strings match in which RE2 finds `regex`.

    None for expressions that are not understood, such as alternatives, or have no text to look for.
    """
    anchored = regex.startswith("^")
    position, end = int(anchored), len(regex)
    if regex.endswith("$") and not regex.endswith("\\$") and end > position:
        end -= 1  # one that is longer is also found
    pieces = [""]
    while position < end:
        atom = _atom(regex, position, end)
        if atom is None:
            return None
        text, position = atom
        repeated = regex[position] if position < end and regex[position] in _QUANTIFIERS else ""
        if repeated:
            after = _after_quantifier(regex, position, end)
            if after is None:
                return None
            position = after
        if text and repeated in ("", "+"):
            pieces[-1] += f"\\{text}" if text in "%_\\" else text
        if not text or repeated:
            pieces.append("")
    if not any(pieces):
        return None
    return ("" if anchored and pieces[0] else "%") + "%".join(filter(None, pieces)) + "%"


def _atom(regex: str, position: int, end: int) -> tuple[str, int] | None:
    """A character that has to occur, empty for one of several, and the position after it."""
    character = regex[position]
    if character == ".":
        return "", position + 1
    if character == "\\":
        following = regex[position + 1] if position + 1 < end else ""
        if following in _CLASSES:
            return "", position + 2
        is_literal = following.isascii() and following.isprintable() and not following.isalnum()
        return (following, position + 2) if following and is_literal else None
    if character == "[":
        return _after_class(regex, position + 1, end)
    return None if character in _SPECIAL else (character, position + 1)


def _after_class(regex: str, position: int, end: int) -> tuple[str, int] | None:
    if regex[position : position + 1] == "^":
        position += 1
    if regex[position : position + 1] == "]":
        position += 1
    while position < end and regex[position] != "]":
        if regex[position] == "[":
            return None
        position += 2 if regex[position] == "\\" else 1
    return ("", position + 1) if position < end else None


def _after_quantifier(regex: str, position: int, end: int) -> int | None:
    """The position after a quantifier, which may be lazy; None if there is another one."""
    if regex[position] == "{":
        stop = regex.find("}", position, end)
        if stop < 0 or not regex[position + 1 : stop].replace(",", "", 1).isdecimal():
            return None
        position = stop
    position += 1
    if position < end and regex[position] == "?":
        position += 1
    return None if position < end and regex[position] in _QUANTIFIERS else position
