"""The metadata of a dataset as SQL tables: ``FROM 'x.lance'.fragments``."""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
from lance_engine.dataset import DatasetVersion

from lance_sql.text.metadata_tables import INDEXES, TAGS

_TAGS_SCHEMA: Final = pa.schema([("name", pa.string()), ("version", pa.uint64()), ("branch", pa.string())])
_INDEXES_SCHEMA: Final = pa.schema(
    [
        ("index_name", pa.string()),
        ("index_type", pa.string()),
        ("fields", pa.string()),
        ("rows_indexed", pa.int64()),
        ("details", pa.string()),
    ]
)


def metadata_table(dataset: DatasetVersion, name: str) -> pa.Table:
    """One of `METADATA_TABLES` for the version of `dataset`; versions and tags are the current ones."""
    if name == TAGS:
        tags = [
            {"name": tag.name, "version": tag.version, "branch": tag.branch} for tag in dataset.tags.list()
        ]
        return pa.Table.from_pylist(tags, schema=_TAGS_SCHEMA)
    if name == INDEXES:
        return _indexes(dataset.inspect.index_health())
    table: pa.Table = getattr(dataset.inspect, name)()
    return table


def _indexes(health: pa.Table) -> pa.Table:
    """The columns that DuckDB's Lance extension shows; the others as JSON."""
    rows = [
        {
            "index_name": row.pop("name"),
            "index_type": row.pop("kind"),
            "fields": ",".join(row.pop("columns")),
            "rows_indexed": row.pop("rows"),
            "details": json.dumps(row, default=str),
        }
        for row in health.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=_INDEXES_SCHEMA)
