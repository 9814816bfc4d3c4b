"""The versions of a dataset: when they were made, by what, and what changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_engine.errors import LanceError
from lance_engine.format.transaction_summary import summarize_transaction
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.features import feature_names
from lance_engine.table.not_found import dataset_not_found
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import StoredVersion, list_versions, read_version

VERSIONS_SCHEMA: Final = pa.schema(
    [
        ("version", pa.uint64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("rows", pa.uint64()),
        ("fragments", pa.uint64()),
        ("manifest_bytes", pa.uint64()),
        ("writer", pa.string()),
        ("features", pa.list_(pa.string())),
        ("message", pa.string()),
    ]
)


def versions(
    uri: str | os.PathLike[str] | Store,
    *,
    storage_options: Mapping[str, Any] | None = None,
    last: int | None = None,
) -> pa.Table:
    """One row per version that still exists, or for the `last` ones, oldest first; one request each.

    `operation` and `message` are null if a version does not record its change, `rows` if counting them
    would need more than the manifest.
    """
    store = open_store(uri, storage_options)
    listed = list_versions(store)
    if listed is None:
        raise dataset_not_found(store)
    rows = []
    for version in listed.versions[-last:] if last else listed.versions:
        path = listed.path(version)
        try:
            stored = read_version(store, path, version)
        except FileNotFoundError:
            # Removed by a clean-up since it was listed.
            continue
        rows.append(_describe(store, stored) | {"manifest_bytes": store.size(path)})
    return pa.Table.from_pylist(rows, schema=VERSIONS_SCHEMA)


def _describe(store: Store, stored: StoredVersion) -> dict[str, Any]:
    manifest = stored.manifest
    writer = manifest.writer_version
    operation = message = None
    if stored.transaction is not None:
        operation, message = summarize_transaction(stored.transaction)
    try:
        live = Snapshot(store, manifest).num_rows
    except LanceError:
        # Deletion files of old versions may be gone, but the version is still listed.
        live = None
    return {
        "version": manifest.version,
        "committed_at": manifest.committed_at,
        "operation": operation,
        "rows": live,
        "fragments": len(manifest.fragments),
        "writer": f"{writer.library} {writer.version}" if writer else None,
        "features": feature_names(manifest.reader_feature_flags | manifest.writer_feature_flags),
        "message": message,
    }
