"""The SQL names of Arrow types: the one table for casts in filters, filters as text, and statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

#: Name -> the type that it stands for.
SQL_TYPES: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
}

#: Arrow type -> its SQL name; several types can have one name.
SQL_NAMES: Final[Mapping[pa.DataType, str]] = {kind: name for name, kind in SQL_TYPES.items()} | {
    pa.float16(): "FLOAT",
    pa.large_string(): "VARCHAR",
    pa.large_binary(): "BLOB",
    pa.date64(): "DATE",
}
