"""Vector indices as a kind of index for searches."""

from __future__ import annotations

from typing import Final

from lance_engine.index.searched import SearchedKind
from lance_engine.index.vector.segment import VectorSegment

VECTORS: Final = SearchedKind("Vector", 2, VectorSegment)
