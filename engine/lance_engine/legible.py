"""Text made safe to show: terminals obey control characters, and URIs may contain passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

# Patterns are compiled when they are first used: that takes a hundredth of the time of a first query.
_pattern = cache(re.compile)

# C0 except tabs and ends of lines, C1, separators of lines, halves of characters, what changes the
# direction of writing, and characters that cannot be seen.
_UNFIT: Final = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def legible(text: str) -> str:
    """`text` with escapes such as ``\\x1b`` instead of characters that control a terminal."""
    return _pattern(_UNFIT).sub(_escaped, text) if not (text.isascii() and text.isprintable()) else text


def legible_line(text: str) -> str:
    """The same for text that must not begin a line or move to its own column."""
    return legible(text).replace("\n", "\\n").replace("\t", "\\t")


def without_secrets(text: str) -> str:
    """`text` without credentials: those in URIs, and values of settings that are named like credentials."""
    if _pattern(_MAYBE, re.I).search(text) is None:
        return text
    for pattern, shown in _HIDDEN:
        text = _pattern(pattern, re.I | re.M).sub(shown, text)
    return text


def hidden(value: object) -> object:
    """`value` without credentials: text, mappings, lists and whatever shows them as text."""
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, Mapping):
        return {
            name: "..." if isinstance(held, str) and _names_secret(name) else hidden(held)
            for name, held in value.items()
        }
    if isinstance(value, (list, tuple)):
        return type(value)(map(hidden, value)) if type(value) in (list, tuple) else value
    shown = str(value)
    return value if without_secrets(shown) == shown else without_secrets(shown)


def _names_secret(name: object) -> bool:
    return _pattern(_WORDS, re.I).search(str(name)) is not None


#: Parts of the names of credentials.
_WORDS: Final = (
    r"sig(?:nature)?(?![a-z])|token|secret|passw|pwd|credential|authorization|access_?key|account_?key|api_?key|"
    r"private_?key|sas_?key|connection_?string|key_id"
)
_MAYBE: Final = rf"://|bearer|{_WORDS}"
_SETTING: Final = rf"""([\w.-]*(?:{_WORDS})[\w.-]*"""
#: What is hidden, and what is shown instead.
_HIDDEN: Final = (
    # The user and password of a URI. Azure names a container before the @, so only a colon shows that
    # there is a password, which may hold slashes; a port does not.
    (r"""(\b[a-z][\w+.-]*://)[^/\s@?#:]*:(?!\d+/)[^\s@'"]*@""", r"\1"),
    (r"(\b(?:https?|s?ftps?|ssh|smb|webdavs?|webhdfs|hdfs|s3a?|gs|gcs|git)://)[^/\s@?#]*@", r"\1"),
    # A parameter of a URI.
    (r"""([?&][\w.-]*(?:sig|token|secret|passw|key|credential|auth)[\w.-]*=)[^&\s\]'"]+""", r"\1..."),
    # name=value as in connection strings, name: 'value' as in dictionaries.
    (rf"""{_SETTING}=)[^\s&;,'")\]]+""", r"\1..."),
    (rf"""{_SETTING}["']?\s*(?:=>|[:=])\s*)(?:'(?:[^']|'')*'?|"[^"]*"?)""", r"\1'...'"),
    # An option of CREATE SECRET.
    (rf"""((?:^|[(,])\s*[\w.-]*(?:{_WORDS})[\w.-]*\s+)(?:'(?:[^']|'')*'?|"[^"]*"?)""", r"\1'...'"),
    (r"\b((?:bearer|authorization\W{1,4}basic)\s+)[\w+/=.~-]{6,}", r"\1..."),
)


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
