"""Names and values of a dataset as HTML, with markup and control characters escaped."""

from __future__ import annotations

import html
from typing import Final

from lance_engine.base import legible_text

#: Characters of a text that are shown: names in a manifest can have millions.
MOST_TEXT: Final = 500


def as_html(value: object) -> str:
    """The text of `value`, also for attributes in double quotes; long ones are cut off."""
    text = str(value)
    return html.escape(legible_text(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"))
