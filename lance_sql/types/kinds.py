"""The map of types: how a dataset stores each type of DuckDB.

A type that Arrow lacks is stored under an extension type that names it: Arrow's canonical one where it
exists, and `arrow.opaque` with DuckDB as vendor for the others. Opaque types are stored as text, which DuckDB
casts to the type and which is safe whatever a file contains; HUGEINT and UHUGEINT as 16 bytes, which DuckDB
reads.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

import pyarrow as pa
from lance_engine.base import EXTENSION_METADATA, EXTENSION_NAME, OPAQUE_EXTENSION, text_metadata
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.expr import SQL_TYPES


class Kind(NamedTuple):
    """A type of DuckDB: the Arrow type in which it is stored, and the extension type that names it."""

    name: str
    arrow: pa.DataType
    extension: str = ""
    #: the parameters of the extension type
    parameters: str = ""

    @property
    def metadata(self) -> dict[str, str] | None:
        """The metadata of a field of this type."""
        if not self.extension:
            return None
        return {EXTENSION_NAME: self.extension, EXTENSION_METADATA: self.parameters}


def opaque(type_name: str) -> dict[str, str]:
    """The metadata of a field with values of a type that only DuckDB has."""
    parameters = json.dumps({"type_name": type_name, "vendor_name": "DuckDB"})
    return {EXTENSION_NAME: OPAQUE_EXTENSION, EXTENSION_METADATA: parameters}


def opaque_name(field: pa.Field) -> str:
    """DuckDB's name for the type of a field that has only an opaque type; empty for other fields."""
    metadata = text_metadata(field.metadata)
    if metadata.get(EXTENSION_NAME) != OPAQUE_EXTENSION:
        return ""
    try:
        metadata_of = json.loads(metadata[EXTENSION_METADATA])
        return str(metadata_of["type_name"]) if metadata_of["vendor_name"] == "DuckDB" else ""
    except (KeyError, TypeError, ValueError, RecursionError):  # from a file
        return ""


def has_extension(field: pa.Field) -> bool:
    """Whether a field, or one inside it, has an extension type."""
    inner = (field.type.field(place) for place in range(field.type.num_fields))
    return EXTENSION_NAME in text_metadata(field.metadata) or any(map(has_extension, inner))


def _own(name: str, arrow: pa.DataType) -> Kind:
    return Kind(name, arrow, *opaque(name.lower()).values())


_VARIANT: Final = pa.struct([pa.field("metadata", pa.binary(), nullable=False), ("value", pa.binary())])

#: The types without parameters, by DuckDB's name: those of Arrow, and those that only DuckDB has.
KINDS: Final = {name: Kind(name, arrow) for name, arrow in SQL_TYPES.items()} | {
    kind.name: kind
    for kind in (
        _own("HUGEINT", pa.binary(16)),
        _own("UHUGEINT", pa.binary(16)),
        _own("BIGNUM", pa.string()),
        Kind("JSON", pa.string(), "arrow.json"),
        _own("BIT", pa.string()),
        Kind("UUID", pa.binary(16), "arrow.uuid"),
        Kind("TIME_NS", pa.time64("ns")),
        _own("TIME WITH TIME ZONE", pa.string()),
        Kind("TIMESTAMPTZ_NS", pa.timestamp("ns", "UTC")),
        _own("INTERVAL", pa.string()),
        Kind("GEOMETRY", pa.binary(), "geoarrow.wkb", "{}"),
        Kind("VARIANT", _VARIANT, "arrow.parquet.variant"),
        Kind('"NULL"', pa.null()),
    )
}

#: Type names before the text of a constant, as in ``DATE '2026-01-31'``, other spellings included.
CONSTANT_TYPES: Final = frozenset(
    {
        "DATE", "DATETIME", "INTERVAL", "JSON", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_MS",
        "TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_US", "UUID",
    }
)  # fmt: skip


def refused(name: str, column: str) -> UnsupportedFeatureError:
    """The error for a column of a type that datasets cannot hold."""
    return UnsupportedFeatureError(
        f"Datasets cannot represent the type {name}",
        column=column,
        remedy="Cast the column to another type, for example MAP {}::MAP(VARCHAR, INTEGER)"
        if name.startswith("MAP")
        else "Cast the column to another type",
    )
