"""Blob columns (format 2.2, blob v2) in schemas: shown as the extension type `lance.blob.v2`.

Scans return the bytes of such columns as large binaries, which become blobs again when written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pyarrow as pa
import pyarrow.types as at

from lance_engine.logical_types import EXTENSION_NAME, with_extensions
from lance_engine.schema_tree import BLOB_ENCODING, BLOB_V2_EXTENSION, Field


class BlobType(pa.ExtensionType):  # type: ignore[misc]
    """Used if no package has registered the extension type."""

    def __init__(self, storage_type: pa.DataType) -> None:
        super().__init__(storage_type, BLOB_V2_EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(storage_type)

    def __reduce__(self) -> tuple[object, ...]:
        return BlobType, (self.storage_type,)


def with_blob_types(schema: pa.Schema, fields: Sequence[Field]) -> pa.Schema:
    """The Arrow schema of `fields` with the extension type instead of the bytes that scans return."""
    if not any(node.is_blob_v2 for field in fields for node in field.walk()):
        return schema
    shown = [_shown(field, arrow) for field, arrow in zip(fields, schema, strict=True)]
    return pa.schema(shown, metadata=schema.metadata)


def _shown(field: Field, arrow: pa.Field) -> pa.Field:
    if field.is_blob_v2:
        metadata = {
            key: value for key, value in (arrow.metadata or {}).items() if key != BLOB_ENCODING.encode()
        }
        storage = pa.struct([child.to_arrow() for child in field.children])
        return pa.field(arrow.name, _blob_type(storage), arrow.nullable, metadata or None)
    kind = arrow.type
    if at.is_struct(kind):
        return arrow.with_type(pa.struct([*map(_shown, field.children, kind)]))
    if len(field.children) != 1:
        return arrow
    if at.is_list(kind):
        return arrow.with_type(pa.list_(_shown(field.children[0], kind.value_field)))
    if at.is_large_list(kind):
        return arrow.with_type(pa.large_list(_shown(field.children[0], kind.value_field)))
    return arrow


def _blob_type(storage: pa.DataType) -> pa.DataType:
    named = pa.field("blob", storage, metadata={EXTENSION_NAME: BLOB_V2_EXTENSION})
    extended = with_extensions(pa.schema([named])).field(0).type
    return extended if isinstance(extended, pa.BaseExtensionType) else BlobType(storage)
