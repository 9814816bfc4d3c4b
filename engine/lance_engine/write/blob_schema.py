"""How the schema of a dataset describes blobs of the second kind (format 2.2, blob v2)."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_engine.schema_tree import BLOB_ENCODING, BLOB_V2_EXTENSION

_NAME: Final = b"ARROW:extension:name"
_LOGICAL: Final = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])


def with_blobs_v2(schema: pa.Schema) -> pa.Schema:
    """The schema of a new dataset of version 2.2: large binaries marked as blobs become the second kind."""
    return pa.schema([_with_blob_v2(field) for field in schema], metadata=schema.metadata)


def _with_blob_v2(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_with_blob_v2(child) for child in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_with_blob_v2(kind.value_field)))
    if pa.types.is_large_list(kind):
        return field.with_type(pa.large_list(_with_blob_v2(kind.value_field)))
    metadata = dict(field.metadata or {})
    if not pa.types.is_large_binary(field.type) or metadata.get(BLOB_ENCODING.encode()) != b"true":
        return field
    del metadata[BLOB_ENCODING.encode()]
    return pa.field(field.name, _LOGICAL, field.nullable, {**metadata, _NAME: BLOB_V2_EXTENSION.encode()})
