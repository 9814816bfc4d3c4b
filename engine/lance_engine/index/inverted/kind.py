"""Inverted indices as a kind of index for searches."""

from __future__ import annotations

from typing import Final

from lance_engine.index.inverted.segment import TextSegment
from lance_engine.index.searched import SearchedKind

INVERTED: Final = SearchedKind("Inverted", 3, TextSegment)
