"""The metadata of a dataset as SQL tables: ``FROM 'x.lance'.fragments``."""

from __future__ import annotations

import json
from typing import Final, TypeVar

import pyarrow as pa
from lance_engine.dataset import DatasetVersion

from lance_sql.text.metadata_tables import INDEXES, TAGS

#: The key of the comment of a table, a column or a field.
COMMENT: Final = "comment"

AnyVersion = TypeVar("AnyVersion", bound=DatasetVersion)

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


def table_comment(dataset: DatasetVersion) -> str | None:
    """The comment of a table, which DuckDB's Lance extension keeps in the metadata of the table."""
    known = dataset.snapshot.manifest.table_metadata.get(COMMENT)
    older = (dataset.storage_schema.metadata or {}).get(COMMENT.encode())
    return known if older is None or known is not None else older.decode("utf-8", "replace")


def with_table_comment(dataset: AnyVersion, text: str | None) -> AnyVersion:
    """The table with another comment, or without one. The schema holds those of tables that Spark created."""
    if COMMENT.encode() in (dataset.storage_schema.metadata or {}):
        dataset = dataset.update_schema_metadata({COMMENT: None})
    return dataset.update_metadata({COMMENT: text})
