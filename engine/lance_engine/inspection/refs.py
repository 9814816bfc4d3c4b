"""Names for versions: the tags and branches of a dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.table.branches import list_branches
from lance_engine.table.tags import list_tags

REFS_SCHEMA: Final = pa.schema(
    [
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        ("branch", pa.string()),
        pa.field("version", pa.uint64(), nullable=False),
        ("created_at", pa.timestamp("us", "UTC")),
        ("updated_at", pa.timestamp("us", "UTC")),
    ]
)


def refs(
    uri: str | os.PathLike[str] | Store, *, storage_options: Mapping[str, Any] | None = None
) -> pa.Table:
    """One row per tag and per branch, by name.

    `version` and `branch` are those of a tag, or the origin of a branch; null is the main branch.
    """
    store = open_store(uri, storage_options)
    rows = [
        {
            "kind": "tag",
            "name": tag.name,
            "branch": tag.branch,
            "version": tag.version,
            "created_at": tag.created_at,
            "updated_at": tag.updated_at,
        }
        for tag in list_tags(store)
    ]
    rows += [
        {
            "kind": "branch",
            "name": branch.name,
            "branch": branch.parent,
            "version": branch.parent_version,
            "created_at": branch.created_at,
            "updated_at": None,
        }
        for branch in list_branches(store)
    ]
    return pa.Table.from_pylist(rows, schema=REFS_SCHEMA)
