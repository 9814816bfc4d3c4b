"""How columns are stored: pages, their encodings and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_engine.encodings.describe import describe_page
from lance_engine.format.container import ColumnMetadata
from lance_engine.format.fragment import Fragment
from lance_engine.inspection.held_columns import held_columns
from lance_engine.schema_tree import Field
from lance_engine.table.snapshot import Snapshot

COLUMNS_SCHEMA: Final = pa.schema(
    [
        ("column", pa.string()),
        ("field_id", pa.int32()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("fragments", pa.uint32()),
        ("pages", pa.uint64()),
        ("bytes", pa.uint64()),
        ("encodings", pa.list_(pa.string())),
    ]
)

PAGES_SCHEMA: Final = pa.schema(
    [
        ("column", pa.string()),
        ("fragment_id", pa.uint32()),
        ("path", pa.string()),
        ("page", pa.uint32()),
        ("first_row", pa.uint64()),
        ("rows", pa.uint64()),
        ("buffers", pa.uint32()),
        ("bytes", pa.uint64()),
        ("encoding", pa.string()),
    ]
)


def columns(snapshot: Snapshot) -> pa.Table:
    """One row per field that owns a column, in schema order: pages, bytes and encodings over all fragments.

    `fragments` counts the fragments that store the column; in other fragments all its values are null.
    """
    paths = snapshot.schema.paths_by_id()
    by_field: dict[int, list[ColumnMetadata]] = {}
    for stored in _stored_columns(snapshot):
        by_field.setdefault(stored.field_id, []).append(stored.metadata)
    rows = []
    for field in _fields_with_columns(snapshot, by_field):
        parts = by_field.get(field.id, [])
        pages = [page for part in parts for page in part.pages]
        own_buffers = sum(size for part in parts for _, size in part.buffers)
        rows.append(
            {
                "column": paths[field.id],
                "field_id": field.id,
                "type": field.logical_type,
                "nullable": field.nullable,
                "fragments": len(parts),
                "pages": len(pages),
                "bytes": own_buffers + sum(size for page in pages for _, size in page.buffers),
                "encodings": sorted({describe_page(page.encoding) for page in pages}),
            }
        )
    return pa.Table.from_pylist(rows, schema=COLUMNS_SCHEMA)


def pages(snapshot: Snapshot, column: str | None = None) -> pa.Table:
    """One row per page, of all columns or of `column` and what is below it, in the order of fragments.

    ColumnNotFoundError if the column does not exist. `first_row` counts from the start of the fragment; in
    format 2.0 it and `rows` count the items of the column, which for list items are not rows.
    """
    paths = snapshot.schema.paths_by_id()
    wanted = set(paths) if column is None else {field.id for field in snapshot.schema.field(column).walk()}
    rows: list[dict[str, Any]] = []
    for stored in _stored_columns(snapshot, wanted):
        first_row = 0
        for number, page in enumerate(stored.metadata.pages):
            rows.append(
                {
                    "column": paths[stored.field_id],
                    "fragment_id": stored.fragment.id,
                    "path": stored.path,
                    "page": number,
                    "first_row": first_row,
                    "rows": page.rows,
                    "buffers": len(page.buffers),
                    "bytes": sum(size for _, size in page.buffers),
                    "encoding": describe_page(page.encoding),
                }
            )
            first_row += page.rows
    return pa.Table.from_pylist(rows, schema=PAGES_SCHEMA)


@dataclass(frozen=True, slots=True)
class _StoredColumn:
    fragment: Fragment
    path: str
    field_id: int
    metadata: ColumnMetadata


def _stored_columns(snapshot: Snapshot, wanted: set[int] | None = None) -> Iterator[_StoredColumn]:
    """The columns of all data files that belong to fields of the schema, of `wanted` ones if given."""
    known = {field.id for field in snapshot.schema.walk()} if wanted is None else wanted
    for fragment in snapshot.fragments:
        for reader, field_id, index in held_columns(snapshot, fragment, known):
            yield _StoredColumn(fragment, reader.path, field_id, reader.column_metadata(index))


def _fields_with_columns(snapshot: Snapshot, by_field: dict[int, Any]) -> Sequence[Field]:
    """Leaves, and other fields with columns: format 2.0 stores structs and lists as their own columns."""
    leaves = {leaf.id for leaf in snapshot.schema.leaves()}
    return [field for field in snapshot.schema.walk() if field.id in leaves or field.id in by_field]
