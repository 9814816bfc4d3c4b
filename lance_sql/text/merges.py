"""Parts of MERGE that its grammar leaves to the position of words, or that the parser does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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


#: What `action_edits` assigns for ``ERROR``, alone and with a message.
NO_MESSAGE: Final = "lance_sql_error"
MESSAGE: Final = "lance_sql_message"


def action_edits(tokens: Sequence[Token]) -> Iterator[tuple[int, int, str]]:
    """The actions in words that the parser knows.

    ``ERROR message`` becomes ``UPDATE SET lance_sql_message = message``, and the ``BY NAME`` or ``BY
    POSITION`` that `matched_by` finds, with a star behind it, is left out.
    """
    for place in _outside(tokens):
        words = [token.upper for token in tokens[place : place + 3]]
        if words[:2] == ["THEN", "ERROR"]:
            error = tokens[place + 1]
            has_message = words[2:] not in ([], ["WHEN"], ["RETURNING"], [";"])
            text = f"UPDATE SET {MESSAGE} = " if has_message else f"UPDATE SET {NO_MESSAGE} = ''"
            yield error.start, error.end, text
        elif words[0] in ("INSERT", "UPDATE") and words[1:] in (["BY", "NAME"], ["BY", "POSITION"]):
            star = tokens[place + 3 : place + 4]
            end = star[0] if star and star[0].text == "*" else tokens[place + 2]
            yield tokens[place + 1].start, end.end, ""


def matched_by(tokens: Sequence[Token]) -> list[str]:
    """``NAME`` or ``POSITION`` for each clause whose action is BY one of them; an empty text for others."""
    rules: list[str] = []
    words = [tokens[place].upper for place in _outside(tokens)]
    for word, behind, last in zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=True):
        if word == "WHEN":
            rules.append("")
        elif rules and word in ("INSERT", "UPDATE") and behind == "BY":
            rules[-1] = last
    return rules


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
