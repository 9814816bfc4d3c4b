"""Converts letters with accents, ligatures and other variants of ASCII characters to ASCII."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

# Letters that Unicode does not decompose.
_LETTERS: Final = {
    "Æ": "AE", "Ð": "D", "Đ": "D", "Ŋ": "N", "Ø": "O", "Þ": "TH", "ß": "ss", "æ": "ae", "\u0131": "i",
    "ð": "d",
    "đ": "d", "ŋ": "n", "þ": "th", "Ħ": "H", "ħ": "h", "ĸ": "k", "Ł": "L", "ł": "l", "ø": "o", "Œ": "OE",
    "œ": "oe", "Ŧ": "T", "ŧ": "t", "ẞ": "SS",
}  # fmt: skip


def fold(token: str) -> str:
    """The token with variants of ASCII characters replaced."""
    return token if token.isascii() else "".join(map(_folded, token))


@lru_cache(maxsize=4096)
def _folded(letter: str) -> str:
    parts = (_LETTERS.get(part, part) for part in unicodedata.normalize("NFKD", letter))
    return "".join(part for part in parts if part.isascii()) or letter
