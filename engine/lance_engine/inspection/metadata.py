"""The keys and values of a version: its configuration, and the metadata of table, schema and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from lance_engine.table.snapshot import Snapshot

_TEXT: Final = pa.string()
ENTRIES_SCHEMA: Final = pa.schema([("key", _TEXT), ("value", _TEXT)])
COLUMN_ENTRIES_SCHEMA: Final = pa.schema([("column", _TEXT), ("key", _TEXT), ("value", _TEXT)])


def entries(held: Mapping[str, str]) -> pa.Table:
    """One row per key, in the order of the keys."""
    return pa.Table.from_pylist(
        [{"key": key, "value": value} for key, value in sorted(held.items())], schema=ENTRIES_SCHEMA
    )


def column_metadata(snapshot: Snapshot) -> pa.Table:
    """One row per column and key; fields of structs are ``a.b``."""
    rows = [
        {"column": path, "key": key, "value": value}
        for path in snapshot.schema.paths_by_id().values()
        for key, value in sorted(snapshot.schema.field(path).metadata.items())
    ]
    return pa.Table.from_pylist(rows, schema=COLUMN_ENTRIES_SCHEMA)
