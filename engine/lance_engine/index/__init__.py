"""Indices: finding rows without reading all of them."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.index.files import SegmentFiles
    from lance_engine.index.kind import RowFinderKind
    from lance_engine.index.registry import kind_of
    from lance_engine.index.segments import CoveringSegment, usable_indices
    from lance_engine.index.vector.options import KINDS as VECTOR_KINDS
    from lance_engine.index.vector.options import vector_options
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "index.files": "SegmentFiles",
            "index.kind": "RowFinderKind",
            "index.registry": "kind_of",
            "index.segments": "CoveringSegment usable_indices",
            "index.vector.options": "KINDS=VECTOR_KINDS vector_options",
        },
    )
