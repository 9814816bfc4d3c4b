"""The name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The one of the `known` names that is most similar to `name`, None if none is.

    They are similar from a ratio of `cutoff` on, as in `difflib`.
    """
    import difflib  # takes two milliseconds, and is only needed for errors

    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return matches[0] if matches else None
