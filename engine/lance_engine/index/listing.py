"""The indices that the manifest of a version lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lance_engine.errors import IndexNotFoundError, LanceError
from lance_engine.format.index_section import IndexSegment, parse_index_section

if TYPE_CHECKING:
    from lance_engine.table.snapshot import Snapshot


def all_segments(snapshot: Snapshot) -> tuple[IndexSegment, ...]:
    """Every segment of every index, usable or not."""
    if not snapshot.index_section:
        return ()
    try:
        return parse_index_section(snapshot.index_section)
    except LanceError as error:
        raise error.at(path=snapshot.uri, version=snapshot.version) from None


def index_not_found(snapshot: Snapshot, name: str) -> IndexNotFoundError:
    """The error that lists the existing indices."""
    names = sorted({segment.name for segment in all_segments(snapshot)})
    return IndexNotFoundError(
        f"Index '{name}' not found",
        path=snapshot.uri,
        version=snapshot.version,
        remedy="Available indices: " + (", ".join(names) or "none"),
    )
