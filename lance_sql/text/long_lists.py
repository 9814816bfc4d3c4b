"""Finds long lists of constants after IN, which some engines parse slowly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from lance_engine.arrow_values import array, of_numpy

from lance_sql.text.once import once_per_statement
from lance_sql.text.statement import Statement
from lance_sql.text.table_conditions import Filtered, selects_with
from lance_sql.text.tokens import Token

#: Shorter lists, in characters, are parsed in less time than another table takes.
LEAST_LENGTH: Final = 1_024

#: Integers that certainly have at most 64 bits.
_INTEGERS: Final = re.compile(r"(?:-?\d{1,18}\s*,\s*)*+-?\d{1,18}\s*")
_STRING: Final = r"'(?:[^']|'')*+'"
_STRINGS: Final = re.compile(rf"(?:{_STRING}\s*,\s*)*+{_STRING}\s*")


class LongList(NamedTuple):
    """``column [NOT] IN (constants)``, a condition of `select` that must be true.

    `column` are the tokens of its name, `constants` is the token of all constants.
    """

    select: Filtered
    column: Sequence[Token]
    is_negated: bool
    constants: Token


@once_per_statement
def long_lists(statement: Statement) -> Sequence[LongList]:
    """The long lists in the conditions of a statement."""
    if len(statement.original) < LEAST_LENGTH or not any(map(_is_long, statement.tokens)):
        return ()
    return [
        LongList(select, name, negation != [], constants)
        for select in selects_with(statement, lambda condition: any(map(_is_long, condition)))
        for condition in select.conditions
        for *name_and_words, opening, constants, closing in [condition]
        for name, negation in [_divided(name_and_words)]
        if name and opening.text == "(" and _is_long(constants) and closing.text == ")"
    ]


def _is_long(token: Token) -> bool:
    return token.kind == "constants" and len(token.text) >= LEAST_LENGTH


def _divided(tokens: Sequence[Token]) -> tuple[Sequence[Token], list[str]]:
    """The tokens of a name, and the words between it and IN; no tokens for other conditions."""
    length = 3 if len(tokens) > 2 and tokens[1].text == "." else 1
    words = [token.upper for token in tokens[length:]]
    name = tokens[:length:2]
    if words not in (["IN"], ["NOT", "IN"]) or any(token.kind not in ("word", "quoted") for token in name):
        return (), []
    return name, words[:-1]


def integers(text: str) -> pa.Array | None:
    """Different constants as int64; None if one is not a plain integer of at most 18 digits."""
    return of_numpy(np.unique(np.fromstring(text, np.int64, sep=","))) if _INTEGERS.fullmatch(text) else None


def strings(text: str) -> pa.Array | None:
    """Different constants as strings; None if one is not."""
    if not _STRINGS.fullmatch(text):
        return None
    found = re.findall(_STRING, text)
    return array(list(dict.fromkeys(written[1:-1].replace("''", "'") for written in found)), pa.string())
