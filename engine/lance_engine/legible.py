"""Text made safe to show: terminals obey control characters, and URIs may contain passwords."""

from __future__ import annotations

import re
from typing import Final

# C0 except tabs and ends of lines, C1, separators of lines, halves of characters, what changes the
# direction of writing, and characters that cannot be seen.
_UNFIT: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def legible(text: str) -> str:
    """`text` with escapes such as ``\\x1b`` instead of characters that control a terminal."""
    return _UNFIT.sub(_escaped, text) if not (text.isascii() and text.isprintable()) else text


def legible_line(text: str) -> str:
    """The same for text that must not begin a line or move to its own column."""
    return legible(text).replace("\n", "\\n").replace("\t", "\\t")


def without_secrets(text: str) -> str:
    """`text` without the users and passwords, and without the signatures, of the URIs in it."""
    if "://" not in text:
        return text
    text = _USER.sub(r"\1", _PASSWORD.sub(r"\1", text))
    return _PARAMETER.sub(r"\1...", text)


# Azure names a container before the @, so only a colon shows that there is a password.
_PASSWORD: Final = re.compile(r"(\b[a-zA-Z][\w+.-]*://)[^/\s@?#]*:[^/\s@]*@")
_USER: Final = re.compile(
    r"(\b(?:https?|s?ftps?|ssh|smb|webdavs?|webhdfs|hdfs|s3a?|gs|gcs|git)://)[^/\s@?#]*@", re.I
)
_PARAMETER: Final = re.compile(
    r"""([?&][\w.-]*(?:sig|token|secret|passw|key|credential|auth)[\w.-]*=)[^&\s\]'"]+""", re.I
)


def _escaped(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
