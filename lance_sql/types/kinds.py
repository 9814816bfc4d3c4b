"""The map of types: how a dataset stores each type of DuckDB, or why it cannot.

A type that Arrow lacks is stored as bytes under an extension type that names it. Arrow's canonical names are
used where they exist, and DuckDB's own (`arrow.opaque` with its name as vendor) for the others, which
DuckDB itself reads and writes.
"""

from __future__ import annotations

import json
from typing import Final

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.records import record


@record
class Kind:
    """A type of DuckDB: the Arrow type in which it is stored, and the extension type that names it.

    `remedy` says what to use instead of a type that is refused, which has no Arrow type.
    """

    name: str
    arrow: pa.DataType | None
    extension: str = ""
    #: the parameters of the extension type
    parameters: str = ""
    remedy: str = ""

    @property
    def metadata(self) -> dict[str, str] | None:
        """The metadata of a field of this type."""
        if not self.extension:
            return None
        return {"ARROW:extension:name": self.extension, "ARROW:extension:metadata": self.parameters}


def _own(name: str, arrow: pa.DataType, called: str) -> Kind:
    """A type that only DuckDB has."""
    return Kind(name, arrow, "arrow.opaque", json.dumps({"type_name": called, "vendor_name": "DuckDB"}))


def _refused(name: str, remedy: str) -> Kind:
    return Kind(name, None, remedy=remedy)


_LEAVES: Final = (
    Kind("BOOLEAN", pa.bool_()),
    Kind("TINYINT", pa.int8()),
    Kind("SMALLINT", pa.int16()),
    Kind("INTEGER", pa.int32()),
    Kind("BIGINT", pa.int64()),
    Kind("UTINYINT", pa.uint8()),
    Kind("USMALLINT", pa.uint16()),
    Kind("UINTEGER", pa.uint32()),
    Kind("UBIGINT", pa.uint64()),
    _own("HUGEINT", pa.binary(16), "hugeint"),
    _own("UHUGEINT", pa.binary(16), "uhugeint"),
    _own("BIGNUM", pa.binary(), "bignum"),
    Kind("FLOAT", pa.float32()),
    Kind("DOUBLE", pa.float64()),
    Kind("VARCHAR", pa.string()),
    Kind("BLOB", pa.binary()),
    _own("BIT", pa.binary(), "bit"),
    Kind("UUID", pa.binary(16), "arrow.uuid"),
    Kind("DATE", pa.date32()),
    Kind("TIME", pa.time64("us")),
    Kind("TIME_NS", pa.time64("ns")),
    Kind("TIMESTAMP_S", pa.timestamp("s")),
    Kind("TIMESTAMP_MS", pa.timestamp("ms")),
    Kind("TIMESTAMP", pa.timestamp("us")),
    Kind("TIMESTAMP_NS", pa.timestamp("ns")),
    Kind("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC")),
    Kind("TIMESTAMPTZ_NS", pa.timestamp("ns", "UTC")),
    Kind("JSON", pa.string(), "arrow.json"),
    Kind("GEOMETRY", pa.binary(), "geoarrow.wkb", "{}"),
    Kind('"NULL"', pa.null()),
    _refused("ENUM", "VARCHAR"),
    _refused("INTERVAL", "a BIGINT of microseconds, or VARCHAR"),
    _refused("TIME WITH TIME ZONE", "TIME and a separate offset column, or VARCHAR"),
    _refused("TUPLE", "a STRUCT, whose fields have names"),
    _refused("UNION", "a STRUCT with a field for each kind, or VARCHAR"),
    _refused("VARIANT", "JSON"),
)

#: The types without parameters, and those that are refused, by DuckDB's name.
KINDS: Final = {kind.name: kind for kind in _LEAVES}


def refused(name: str, column: str) -> UnsupportedFeatureError:
    """The error for a column of a type that datasets cannot hold."""
    kind = KINDS.get(name)
    return UnsupportedFeatureError(
        f"Datasets cannot represent the type {name}",
        column=column,
        remedy=f"Use {kind.remedy} instead: CAST({column.partition('.')[0]} AS ...)"
        if kind
        else "Cast the column to another type",
    )
