"""All kinds of indices for searches."""

from __future__ import annotations

from typing import Any, Final

from lance_engine.format.index_section import IndexSegment
from lance_engine.operations.searched_indices import SearchedIndices
from lance_engine.operations.text_indices import INVERTED_INDICES
from lance_engine.operations.vector_indices import VECTOR_INDICES

SEARCHED: Final[tuple[SearchedIndices[Any], ...]] = (VECTOR_INDICES, INVERTED_INDICES)


def indices_of(segment: IndexSegment) -> SearchedIndices[Any] | None:
    """The kind of a segment; None if it is an unknown kind or its version is not supported."""
    return next((indices for indices in SEARCHED if indices.kind.reads(segment)), None)
