"""Names and values of a dataset as HTML, with markup and control characters escaped."""

from __future__ import annotations

import html

from lance_engine.legible import legible


def as_html(value: object) -> str:
    """The text of `value`, also for attributes in double quotes."""
    return html.escape(legible(str(value)))
