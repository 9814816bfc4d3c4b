"""Replacements in the text of a statement."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement in the text.

    With a `name`, it is only made if that name refers to a dataset; a replacement for a `dialect` is only
    made for engines that require numbered parameters and a SELECT in each query.
    """

    start: int
    end: int
    replacement: str
    name: str | None = None
    dialect: bool = False
