"""Parts of MERGE that its grammar leaves to the position of words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lance_sql.text.tokens import Token


def source_edits(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """Brackets around ``a JOIN b ON ...`` behind USING, where the parser expects one table.

    The condition of the MERGE is the last ON or USING before its first WHEN.
    """
    places = list(_outside(tokens))
    words = [tokens[place].upper for place in places]
    if "USING" not in words:
        return
    using = words.index("USING")
    end = next((place for place, word in enumerate(words) if word == "WHEN"), len(words))
    condition = max(
        (place for place in range(using + 1, end) if words[place] in ("ON", "USING")), default=None
    )
    if condition is not None and "JOIN" in words[using:condition]:
        yield tokens[places[using]].end, tokens[places[using]].end, " ("
        yield tokens[places[condition]].start, tokens[places[condition]].start, ") "


def has_error_action(tokens: Sequence[Token]) -> bool:
    """Whether a clause has the action ERROR, rather than a value that calls ``error``."""
    return any(
        [token.upper for token in tokens[place : place + 2]] == ["THEN", "ERROR"]
        for place in _outside(tokens)
    )


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """The positions of tokens outside brackets and ``CASE ... END``."""
    depth = 0
    for place, token in enumerate(tokens):
        is_part = place > 0 and tokens[place - 1].text == "."
        if token.text in (")", "]", "}") or (token.upper == "END" and not is_part):
            depth = max(depth - 1, 0)
        elif token.text in ("(", "[", "{") or (token.upper == "CASE" and not is_part):
            depth += 1
        elif depth == 0:
            yield place
