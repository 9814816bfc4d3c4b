"""Names and values of a dataset as HTML, with markup and control characters escaped."""

from __future__ import annotations

import html

from lance_engine.base import legible_text


def as_html(value: object) -> str:
    """The text of `value`, also for attributes in double quotes."""
    return html.escape(legible_text(str(value)))
