"""The transactions of a dataset: what each version changed, as its author recorded it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_engine.errors import LanceError
from lance_engine.format.operations import (
    Append,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Rewrite,
    Update,
)
from lance_engine.format.transaction import Transaction, parse_transaction
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.not_found import dataset_not_found
from lance_engine.table.snapshot import TRANSACTIONS
from lance_engine.table.versions import StoredVersion, list_versions, read_version

TRANSACTIONS_SCHEMA: Final = pa.schema(
    [
        pa.field("version", pa.uint64(), nullable=False),
        ("read_version", pa.uint64()),
        ("uuid", pa.string()),
        ("operation", pa.string()),
        ("fragments_added", pa.uint64()),
        ("fragments_updated", pa.uint64()),
        ("fragments_removed", pa.uint64()),
        ("predicate", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
        ("file", pa.string()),
    ]
)


def transactions(
    uri: str | os.PathLike[str] | Store, *, storage_options: Mapping[str, Any] | None = None
) -> pa.Table:
    """One row per version that still exists, oldest first; if it is lost, all but `version` is null.

    `read_version` is the version that its author had read, several below `version` if others committed in
    between. The counts of fragments are null for operations that do not record them. `file` is the name below
    ``_transactions``, null if only the manifest records the transaction.
    """
    store = open_store(uri, storage_options)
    listed = list_versions(store)
    if listed is None:
        raise dataset_not_found(store)
    rows = []
    for version in listed.versions:
        try:
            stored = read_version(store, listed.path(version), version)
        except FileNotFoundError:
            # Removed by a clean-up since it was listed.
            continue
        rows.append({"version": version, **_describe(store, stored)})
    return pa.Table.from_pylist(rows, schema=TRANSACTIONS_SCHEMA)


def _describe(store: Store, stored: StoredVersion) -> dict[str, Any]:
    transaction = read_transaction(store, stored)
    if transaction is None:
        return {}
    operation = transaction.operation
    return {
        "read_version": transaction.read_version,
        "uuid": transaction.uuid,
        "operation": operation.kind.value,
        "predicate": operation.predicate or None if isinstance(operation, Delete) else None,
        "properties": list(transaction.properties.items()),
        "file": stored.manifest.transaction_file or None,
        **_fragments(operation),
    }


def read_transaction(store: Store, stored: StoredVersion) -> Transaction | None:
    """The transaction that made a version, None if it is lost or cannot be read."""
    data = stored.transaction
    try:
        if data is None and stored.manifest.transaction_file:
            data = store.read(f"{TRANSACTIONS}/{stored.manifest.transaction_file}")
        return None if data is None else parse_transaction(data)
    except (FileNotFoundError, LanceError):
        # It may be lost for an old version, which is still listed.
        return None


def _fragments(operation: Operation) -> dict[str, int]:
    added = updated = removed = 0
    match operation:
        case Append() | Overwrite():
            added = len(operation.fragments)
        case Delete():
            updated, removed = len(operation.updated_fragments), len(operation.removed_fragment_ids)
        case Update():
            added = len(operation.new_fragments)
            updated, removed = len(operation.updated_fragments), len(operation.removed_fragment_ids)
        case Merge():
            updated = len(operation.fragments)
        case Rewrite():
            added = sum(len(group.new_fragments) for group in operation.groups)
            removed = sum(len(group.old_fragments) for group in operation.groups)
        case _:
            return {}
    return {"fragments_added": added, "fragments_updated": updated, "fragments_removed": removed}
