"""How much of a version its indices cover, and which of their segments are obsolete."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_engine.errors import LanceError
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.inverted.kind import INVERTED
from lance_engine.index.kind import is_usable
from lance_engine.index.listing import all_segments
from lance_engine.index.registry import readable_kind
from lance_engine.index.vector.kind import VECTORS
from lance_engine.index.vector.metadata import described_index
from lance_engine.index.vector.options import KINDS
from lance_engine.index.vector.segment import is_untrained
from lance_engine.table.snapshot import Snapshot

INDEX_HEALTH_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("segments", pa.uint64()),
        ("stale_segments", pa.uint64()),
        ("fragments", pa.uint64()),
        ("unindexed_fragments", pa.uint64()),
        ("rows", pa.uint64()),
        ("unindexed_rows", pa.uint64()),
        ("bytes", pa.uint64()),
        ("created_at", pa.timestamp("ms", "UTC")),
        ("advice", pa.string()),
    ]
)


def index_health(snapshot: Snapshot) -> pa.Table:
    """One row per index. It counts live rows; `rows` are those that the index covers.

    A segment is stale if it covers fragments that no longer exist, does not record what it covers, or has
    an unknown kind or version. `advice` is null if there is nothing to do.
    """
    paths = snapshot.schema.paths_by_id()
    live = {fragment.id: snapshot.live_rows(fragment) for fragment in snapshot.fragments}
    grouped: dict[str, list[IndexSegment]] = {}
    for segment in all_segments(snapshot):
        grouped.setdefault(segment.name, []).append(segment)
    rows = []
    for name, segments in grouped.items():
        kinds = [_kind(snapshot, segment) for segment in segments]
        readable = [segment for segment, kind in zip(segments, kinds, strict=True) if kind is not None]
        unread = [segment for segment, kind in zip(segments, kinds, strict=True) if kind is None]
        waiting = [segment for segment in unread if _is_only_described(snapshot, segment)]
        covered = {number for segment in readable for number in segment.fragment_ids or () if number in live}
        gone = sum(bool(set(segment.fragment_ids or ()) - live.keys()) for segment in readable)
        indexed = sum(live[number] for number in covered)
        created = [segment.created_at for segment in segments if segment.created_at is not None]
        sizes = [sum(size for _, size in segment.files) for segment in segments]
        unindexed = sum(live.values()) - indexed
        rows.append(
            {
                "name": name,
                "kind": next((kind for kind in kinds if kind is not None), segments[0].kind),
                "columns": [paths.get(field, f"field {field}") for field in segments[0].fields],
                "segments": len(segments),
                "stale_segments": len(unread) - len(waiting) + gone,
                "fragments": len(covered),
                "unindexed_fragments": len(live) - len(covered),
                "rows": indexed,
                "unindexed_rows": unindexed,
                "bytes": sum(sizes) if all(segment.files for segment in segments) else None,
                "created_at": max(created, default=None),
                "advice": _advice(bool(readable or waiting), unindexed, gone),
            }
        )
    return pa.Table.from_pylist(rows, schema=INDEX_HEALTH_SCHEMA)


def _kind(snapshot: Snapshot, segment: IndexSegment) -> str | None:
    """The kind of a segment, None if it cannot be read."""
    for searched in (VECTORS, INVERTED):
        if searched.reads(segment):
            try:
                opened = searched.covering(snapshot, segment).open()
            except LanceError:
                return None
            return None if opened is None else opened.kind
    kind = readable_kind(segment.kind)
    return segment.kind if kind is not None and is_usable(segment, kind) else None


def _is_only_described(snapshot: Snapshot, segment: IndexSegment) -> bool:
    """Whether it is a vector index without files, which `optimize_indices` builds."""
    described = described_index(segment.details) if VECTORS.reads(segment) else None
    is_built_here = described is not None and described[0] in KINDS
    return is_built_here and is_untrained(VECTORS.covering(snapshot, segment).files)


def _advice(is_readable: bool, unindexed: int, gone: int) -> str | None:
    if not is_readable:
        return "not read: build it again, or leave it to other readers"
    return "optimize_indices" if unindexed or gone else None
