"""Calls of functions of one column of strings and constants, such as ``length(name)``.

Their value only depends on the string, so it can be computed once for each distinct one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from lance_engine.records import record

from lance_sql.text.tokens import Token, arguments, closing

#: Functions of DuckDB and DataFusion that cannot fail, with the numbers of their constants: of numbers and
#: booleans, and of strings that are hardly longer than the given ones.
_OF_NUMBERS: Final = {
    "ascii": (0,), "char_length": (0,), "character_length": (0,), "contains": (1,), "ends_with": (1,),
    "instr": (1,), "length": (0,), "prefix": (1,), "regexp_full_match": (1,), "regexp_matches": (1,),
    "starts_with": (1,), "strlen": (0,), "strpos": (1,), "suffix": (1,), "unicode": (0,),
}  # fmt: skip
_OF_STRINGS: Final = {
    "lcase": (0,), "left": (1,), "lower": (0,), "ltrim": (0,), "regexp_extract": (1, 2),
    "regexp_replace": (2,), "reverse": (0,), "right": (1,), "rtrim": (0,), "split_part": (2,),
    "substr": (1, 2), "substring": (1, 2), "trim": (0,), "ucase": (0,), "upper": (0,),
}  # fmt: skip
FUNCTIONS: Final = _OF_NUMBERS | _OF_STRINGS
#: Those of which a character may have up to three times the bytes.
_CASES: Final = frozenset({"lcase", "lower", "ucase", "upper"})
#: What the text that replaces others may have: characters, and references to parts of the string.
_MOST_CHARACTERS, _MOST_REFERENCES = 64, 8


@record
class Call(Token):
    """A call as one token; `written` is the call with `STRING` in place of the column."""

    column: str
    written: str
    #: how many times the bytes of a string, and how many more bytes, the value has at most
    most_times: int
    most_more: int

    def longest(self, strings: int, size: int) -> int:
        """How many bytes the call returns at most for so many strings of so many bytes."""
        return strings * self.most_more + size * self.most_times

    @property
    def value(self) -> str:
        """A name that no column has; it is the same for calls of the same value, also in lower case."""
        return f"{self.column}\0{self.written.encode().hex()}"


#: What stands for the column in `Call.written`.
STRING: Final = '"string"'


def with_calls(
    tokens: list[Token],
    qualifiers: Collection[str],
    columns: Collection[str],
    accepts: Callable[[Call], bool],
) -> list[Token]:
    """The tokens with accepted calls of `columns`, by lower-case name, as one token each."""
    found: list[Token] = []
    position = 0
    while position < len(tokens):
        call = _call(tokens, position, qualifiers, columns)
        token, length = (tokens[position], 1) if call is None or not accepts(call[0]) else call
        found.append(token)
        position += length
    return found


def _call(
    tokens: list[Token], position: int, qualifiers: Collection[str], columns: Collection[str]
) -> tuple[Call, int] | None:
    """The call that begins at a position, and its number of tokens."""
    name = tokens[position].text.lower() if tokens[position].kind == "word" else ""
    if name not in FUNCTIONS or (position and tokens[position - 1].text == "."):
        return None
    is_call = position + 1 < len(tokens) and tokens[position + 1].text == "("
    end = closing(tokens, position + 1) if is_call else None
    if end is None:
        return None
    first, *others = arguments(tokens[position + 2 : end])
    if len(first) == 3 and first[1].text == "." and first[0].value.lower() in qualifiers:
        first = first[2:]
    if len(first) != 1 or first[0].kind not in ("word", "quoted") or first[0].value.lower() not in columns:
        return None
    if len(others) not in FUNCTIONS[name] or not all(map(_is_constant, others)):
        return None
    constants = ["".join(token.text for token in other) for other in others]
    if name in _OF_STRINGS and constants and not _is_short(constants[-1]):
        return None
    written = f"{name}({', '.join([STRING, *constants])})"
    start = tokens[position].start
    # Only its length counts: comments and spaces may be in it.
    covered = "_" * (tokens[end].end - start)
    times, more = _growth(name, constants)
    return Call("quoted", covered, start, first[0].value.lower(), written, times, more), end - position + 1


def _growth(name: str, constants: list[str]) -> tuple[int, int]:
    if name == "regexp_replace":  # only what is found first
        return 1 + _references(constants[-1]), len(constants[-1].encode())
    return (3 if name in _CASES else 1), 0


def _is_constant(tokens: list[Token]) -> bool:
    if len(tokens) == 2 and tokens[0].text == "-":
        return tokens[1].kind == "number"
    return len(tokens) == 1 and tokens[0].kind in ("string", "number")


def _is_short(constant: str) -> bool:
    return len(constant) <= _MOST_CHARACTERS and _references(constant) <= _MOST_REFERENCES


def _references(constant: str) -> int:
    return constant.count("\\") + constant.count("$")
