"""Queries for `Dataset.search` that say more than a text does."""

from lance_engine.search.text.query import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery

__all__ = ["Boolean", "Boost", "Match", "MultiMatch", "Phrase", "TextQuery"]
