"""The fragments of a version and the files that they consist of."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_engine.format.fragment import DataFile
from lance_engine.table.snapshot import Snapshot

FRAGMENTS_SCHEMA: Final = pa.schema(
    [
        ("fragment_id", pa.uint32()),
        ("rows", pa.uint64()),
        ("physical_rows", pa.uint64()),
        ("deleted_rows", pa.uint64()),
        ("files", pa.uint32()),
        ("bytes", pa.uint64()),
        ("deletion_file", pa.string()),
    ]
)

FILES_SCHEMA: Final = pa.schema(
    [
        ("fragment_id", pa.uint32()),
        ("path", pa.string()),
        ("version", pa.string()),
        ("rows", pa.uint64()),
        ("bytes", pa.uint64()),
        ("columns", pa.list_(pa.string())),
    ]
)

DELETIONS_SCHEMA: Final = pa.schema(
    [
        ("fragment_id", pa.uint32()),
        ("path", pa.string()),
        ("kind", pa.string()),
        ("read_version", pa.uint64()),
        ("deleted_rows", pa.uint64()),
        ("physical_rows", pa.uint64()),
        ("bytes", pa.uint64()),
    ]
)


def fragments(snapshot: Snapshot) -> pa.Table:
    """One row per fragment; `bytes` is the size of its data files on storage."""
    rows = []
    for fragment in snapshot.fragments:
        live = snapshot.live_rows(fragment)
        deletion = fragment.deletion_file
        rows.append(
            {
                "fragment_id": fragment.id,
                "rows": live,
                "physical_rows": fragment.physical_rows,
                "deleted_rows": fragment.physical_rows - live,
                "files": len(fragment.files),
                "bytes": sum(_size(snapshot, file) for file in fragment.files),
                "deletion_file": deletion.file_name(fragment.id) if deletion else None,
            }
        )
    return pa.Table.from_pylist(rows, schema=FRAGMENTS_SCHEMA)


def files(snapshot: Snapshot) -> pa.Table:
    """One row per data file; `columns` are the paths of the fields it holds that the schema still has."""
    paths = snapshot.schema.paths_by_id()
    rows = []
    for fragment in snapshot.fragments:
        for file in fragment.files:
            store, path = snapshot.data_file_location(file)
            rows.append(
                {
                    "fragment_id": fragment.id,
                    "path": path if store is snapshot.store else f"{store.uri}/{path}",
                    "version": file.storage_version,
                    "rows": fragment.physical_rows,
                    "bytes": _size(snapshot, file),
                    "columns": [paths[field] for field in file.fields if field in paths],
                }
            )
    return pa.Table.from_pylist(rows, schema=FILES_SCHEMA)


def deletions(snapshot: Snapshot) -> pa.Table:
    """One row per fragment with deleted rows; `read_version` is that of the last deletion."""
    rows = []
    for fragment in snapshot.fragments:
        deletion = fragment.deletion_file
        if deletion is None:
            continue
        store, path = snapshot.deletion_file_location(fragment, deletion)
        rows.append(
            {
                "fragment_id": fragment.id,
                "path": path if store is snapshot.store else f"{store.uri}/{path}",
                "kind": deletion.kind.name.lower(),
                "read_version": deletion.read_version,
                "deleted_rows": fragment.physical_rows - snapshot.live_rows(fragment),
                "physical_rows": fragment.physical_rows,
                "bytes": store.size(path),
            }
        )
    return pa.Table.from_pylist(rows, schema=DELETIONS_SCHEMA)


def _size(snapshot: Snapshot, file: DataFile) -> int:
    if file.file_size is not None:
        return file.file_size
    store, path = snapshot.data_file_location(file)
    return store.size(path)
