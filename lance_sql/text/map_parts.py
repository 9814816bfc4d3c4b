"""The parts of maps that a query uses: ``m['k']``, ``map_keys(m)``, ``map_values(m)``, ``cardinality(m)``."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from lance_engine.map_parts import KEYS, SIZE, VALUES

from lance_sql.text.tokens import Token

_FUNCTIONS: Final = {"CARDINALITY": SIZE, "MAP_KEYS": KEYS, "MAP_VALUES": VALUES}


class MapCall(NamedTuple):
    """A call of a function of a whole map: its characters, and the same as a field of a struct."""

    start: int
    end: int
    instead: str


def map_part(tokens: list[Token], position: int, *, functions: bool) -> tuple[str, ...]:
    """The part used of the map in the column at `position`; nothing if all of it may be used.

    `functions`: those for maps are those of the engine, not others of the same names.
    """
    called = _call(tokens, position)
    if called is not None:
        return (_FUNCTIONS[tokens[called].upper],) if functions else ()
    key = position + 2
    if [token.text for token in tokens[position + 1 : position + 4 : 2]] != ["[", "]"]:
        return ()
    found = tokens[key].value if tokens[key].kind == "string" else ""
    return (found,) if found and found not in (KEYS, SIZE, VALUES) else ()


def map_calls(tokens: list[Token], columns: Collection[str]) -> Iterator[MapCall]:
    """The calls of functions of whole maps, which are `columns` (lower-case names)."""
    for position, token in enumerate(tokens):
        if token.kind in ("word", "quoted") and token.value.lower() in columns:
            called = _call(tokens, position)
            if called is not None:
                name = "".join(part.text for part in tokens[called + 2 : position + 1])
                field = _FUNCTIONS[tokens[called].upper]
                yield MapCall(tokens[called].start, tokens[position + 1].end, f"{name}['{field}']")


def _call(tokens: list[Token], position: int) -> int | None:
    """The position of the function that is called with nothing but the column at a position."""
    first = position
    while first >= 2 and tokens[first - 1].text == "." and tokens[first - 2].kind in ("word", "quoted"):
        first -= 2
    if first < 2 or position + 1 == len(tokens):
        return None
    if (tokens[first - 1].text, tokens[position + 1].text) != ("(", ")"):
        return None
    function = first - 2
    if tokens[function].kind != "word" or tokens[function].upper not in _FUNCTIONS:
        return None
    return None if function and tokens[function - 1].text == "." else function
