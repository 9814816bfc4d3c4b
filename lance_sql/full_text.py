"""Structured queries for `Dataset.search`."""

from lance_engine.search import Boolean, Boost, Match, MultiMatch, Phrase, TextQuery

__all__ = ["Boolean", "Boost", "Match", "MultiMatch", "Phrase", "TextQuery"]
