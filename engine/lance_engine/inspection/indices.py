"""The indices of a version."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_engine.errors import LanceError
from lance_engine.format.index_section import parse_index_section
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
    present = {fragment.id for fragment in snapshot.fragments}
    try:
        segments = parse_index_section(snapshot.index_section or b"")
    except LanceError as error:
        raise error.at(path=snapshot.uri, version=snapshot.version) from None
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
