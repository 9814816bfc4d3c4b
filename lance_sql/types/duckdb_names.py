"""DuckDB's names for column types."""

from __future__ import annotations

import functools

import pyarrow as pa

from lance_sql.scratch import scratch
from lance_sql.types.declared import declared_type


def duckdb_types(schema: pa.Schema) -> list[str]:
    """DuckDB's names for the types of the columns."""
    return [_duckdb_type(declared_type(field.type), *_extension(field)) for field in schema]


def _extension(field: pa.Field) -> tuple[bytes | None, ...]:
    """The type in the metadata of a field: JSON is declared as a string with a type name."""
    metadata = field.metadata or {}
    return tuple(metadata.get(key) for key in _EXTENSION)


_EXTENSION = (b"ARROW:extension:name", b"ARROW:extension:metadata")


@functools.lru_cache(maxsize=1024)
def _duckdb_type(kind: pa.DataType, *extension: bytes | None) -> str:
    metadata = {key: value for key, value in zip(_EXTENSION, extension, strict=True) if value is not None}
    with scratch() as connection:
        schema = pa.schema([pa.field("value", kind, metadata=metadata)])
        return str(connection.from_arrow(schema.empty_table()).types[0])
