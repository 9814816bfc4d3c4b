"""Arrow data as tables of DuckDB, in the types that datasets store for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from lance_engine.base import plain_field, with_types, without_extensions

from lance_sql.types.casts import read_columns
from lance_sql.types.declared import declared

if TYPE_CHECKING:
    import duckdb


def register_table(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Register rows as the table `name`."""
    stored = pa.schema(map(plain_field, rows.schema))
    register_stored(connection, name, _in_types(rows, pa.schema(map(declared, stored))), stored)


def register_stored(connection: duckdb.DuckDBPyConnection, name: str, data: Any, schema: pa.Schema) -> None:
    """Register data that DuckDB scans, whose columns are those of `schema` in a dataset."""
    columns = read_columns(schema)
    connection.register(name, data if columns is None else connection.from_arrow(data).project(columns))


def _in_types(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows in types that DuckDB reads."""
    if rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [
        pa.chunked_array(list(map(without_extensions, column.chunks)), plain_field(field).type)
        for column, field in zip(rows.columns, rows.schema, strict=True)
    ]
    return with_types(pa.Table.from_arrays(columns, schema.names), schema)
