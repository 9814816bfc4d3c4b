"""Extracts long lists of integers from SQL text: the parser needs microseconds per number."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa

#: The placeholder for the list with this number in a condition ``x IN (:integer_list_0)``.
NAME: Final = "integer_list_"
# Shorter lists are left to the parser.
_FEW: Final = 32
# Quoted text, or a list after IN; numbers with this few digits fit 64 bits.
_QUOTED_OR_LIST: Final = re.compile(
    rf"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\bIN\s*\(((?:\s*-?[0-9]{{1,18}}\s*,){{{_FEW},}}\s*-?[0-9]{{1,18}}\s*)\)""",
    re.IGNORECASE,
)
# Comments and other ways of quoting, in which lists would have to be distinguished from text.
_UNCLEAR: Final = re.compile(rf"--|/\*|[$`\\#]|{NAME}")


def without_integer_lists(text: str) -> tuple[str, list[pa.Int64Array]]:
    """The text with placeholders for long lists of numbers, and these lists.

    Positions in the remaining text do not change.
    """
    lists: list[pa.Int64Array] = []

    def shortened(match: re.Match[str]) -> str:
        whole, numbers = match.group(), match.group(1)
        if numbers is None:
            return whole
        lists.append(pa.array(np.array(numbers.split(","), dtype=np.int64)))
        name = f":{NAME}{len(lists) - 1}"
        start = match.start(1) - match.start()
        blank = "".join("\n" if character == "\n" else " " for character in numbers[len(name) :])
        return whole[:start] + name + blank + whole[start + len(numbers) :]

    if len(text) < 2 * _FEW or _UNCLEAR.search(text):
        return text, lists
    return _QUOTED_OR_LIST.sub(shortened, text), lists
