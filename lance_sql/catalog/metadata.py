"""The metadata of a dataset as SQL tables: ``FROM 'x.lance'.fragments``."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from lance_engine.dataset import DatasetVersion

from lance_sql.text.metadata_tables import TAGS

_TAGS_SCHEMA = pa.schema([("name", pa.string()), ("version", pa.uint64()), ("branch", pa.string())])


def metadata_table(dataset: DatasetVersion, name: str) -> pa.Table:
    """One of `METADATA_TABLES` for the version of `dataset`; versions and tags are the current ones."""
    if name == TAGS and not hasattr(dataset.inspect, TAGS):
        rows: list[dict[str, Any]] = [
            {"name": tag.name, "version": tag.version, "branch": tag.branch} for tag in dataset.tags.list()
        ]
        return pa.Table.from_pylist(rows, schema=_TAGS_SCHEMA)
    table: pa.Table = getattr(dataset.inspect, name)()
    return table
