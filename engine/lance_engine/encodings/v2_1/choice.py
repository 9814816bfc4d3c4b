"""Chooses the cheapest encoding for values in chunks."""

from __future__ import annotations

from typing import TypeVar

from lance_engine.encodings.v2_1 import general
from lance_engine.encodings.v2_1.candidate import Candidate, cheapest
from lance_engine.encodings.v2_1.context import ChunkEncoding, PageContext

_Values = TypeVar("_Values")


def best_in_chunks(
    context: PageContext, encodings: tuple[ChunkEncoding[_Values], ...], values: _Values
) -> Candidate:
    """The best of `encodings` (the first is plain) without a dictionary; compressed if that pays."""
    settings = context.settings
    if settings.compression == "none":
        encodings = encodings[:1]
    offered = [estimated for each in encodings if (estimated := each.estimate(context, values)) is not None]
    plain = offered[0]
    alone = [candidate for candidate in offered if candidate.alone]
    for candidate in alone:
        if candidate.asked:
            return candidate
    inner = [candidate for candidate in offered if candidate.around is not None]
    inner = [candidate for candidate in inner if candidate.asked] or inner
    wrapped = [
        general.estimate(context, candidate, scheme)
        for candidate in inner
        for scheme in context.schemes(plain.size)
    ]
    if settings.general:
        # Requested explicitly, so decoding time is not counted.
        return min([*alone, *wrapped], key=lambda candidate: candidate.size)
    return cheapest(alone, wrapped, context.profile)
