"""The indices of a version."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from lance_engine.format.fragment_list import fragment_ids
from lance_engine.format.index_section import IndexSegment
from lance_engine.index.listing import all_segments, index_not_found
from lance_engine.table.snapshot import Snapshot

INDICES_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("uuid", pa.string()),
        ("dataset_version", pa.uint64()),
        ("index_version", pa.int32()),
        ("fragments", pa.uint64()),
        ("uncovered_fragments", pa.uint64()),
        ("bytes", pa.uint64()),
        ("created_at", pa.timestamp("ms", "UTC")),
    ]
)


def indices(snapshot: Snapshot) -> pa.Table:
    """One row per index segment; segments of one index share the name.

    `fragments` counts the fragments of this version that the segment covers, `uncovered_fragments` the
    others, whose rows have to be scanned. `bytes` is null when the manifest does not record the files.
    """
    paths = snapshot.schema.paths_by_id()
    present = set(fragment_ids(snapshot.fragments).tolist())
    segments = all_segments(snapshot)
    rows = []
    for segment in segments:
        covered = present.intersection(segment.fragment_ids or ())
        rows.append(
            {
                "name": segment.name,
                "kind": segment.kind,
                "columns": [paths.get(field, f"field {field}") for field in segment.fields],
                "uuid": str(segment.uuid),
                "dataset_version": segment.dataset_version,
                "index_version": segment.index_version,
                "fragments": len(covered),
                "uncovered_fragments": len(present) - len(covered),
                "bytes": sum(size for _, size in segment.files) if segment.files else None,
                "created_at": segment.created_at,
            }
        )
    return pa.Table.from_pylist(rows, schema=INDICES_SCHEMA)


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """The size and structure of an index in numbers; IndexNotFoundError if no index has this name.

    Keys: ``name``, ``kind``, ``columns``, ``fragments`` and ``uncovered_fragments``, ``rows`` and
    ``uncovered_rows`` (live ones), ``bytes`` (None where the manifest does not record the files) and
    ``segments``, a list with ``uuid``, ``dataset_version``, ``fragments``, ``bytes``, and for kinds that can
    be used other numbers, such as ``pages`` or ``distinct_values``.
    """
    segments = [segment for segment in all_segments(snapshot) if segment.name == name]
    if not segments:
        raise index_not_found(snapshot, name)
    paths = snapshot.schema.paths_by_id()
    present = {fragment.id: snapshot.live_rows(fragment) for fragment in snapshot.fragments}
    covered = set().union(*(present.keys() & set(segment.fragment_ids or ()) for segment in segments))
    sizes = [sum(size for _, size in segment.files) if segment.files else None for segment in segments]
    rows = sum(present[fragment] for fragment in covered)
    return {
        "name": name,
        "kind": segments[0].kind,
        "columns": [paths.get(field, f"field {field}") for field in segments[0].fields],
        "fragments": len(covered),
        "uncovered_fragments": len(present) - len(covered),
        "rows": rows,
        "uncovered_rows": sum(present.values()) - rows,
        "bytes": None if None in sizes else sum(size or 0 for size in sizes),
        "segments": [
            {
                "uuid": str(segment.uuid),
                "dataset_version": segment.dataset_version,
                "fragments": len(present.keys() & set(segment.fragment_ids or ())),
                "bytes": size,
                **_numbers(snapshot, segment),
            }
            for segment, size in zip(segments, sizes, strict=True)
        ],
    }


def _numbers(snapshot: Snapshot, segment: IndexSegment) -> dict[str, int]:
    """The statistics in the files of a segment."""
    from lance_engine.index.files import SegmentFiles
    from lance_engine.index.inverted.kind import INVERTED
    from lance_engine.index.kind import is_usable
    from lance_engine.index.registry import readable_kind
    from lance_engine.index.vector.kind import VECTORS

    for searched in (VECTORS, INVERTED):
        if searched.reads(segment):
            opened = searched.covering(snapshot, segment).open()
            return {} if opened is None else dict(opened.statistics)
    kind = readable_kind(segment.kind)
    if kind is None or not is_usable(segment, kind):
        return {}
    return dict(kind.open(SegmentFiles(snapshot, segment)).statistics)
