"""Types of columns, in DuckDB's syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError

from lance_sql.catalog.defaults import with_default
from lance_sql.engines.base import Parameters
from lance_sql.engines.duckdb.capabilities import CAPABILITIES as DUCKDB
from lance_sql.engines.errors import translated
from lance_sql.scratch import scratch
from lance_sql.statements.session import Session
from lance_sql.text.tokens import quote
from lance_sql.types.columns import column
from lance_sql.types.duckdb_names import named_kind
from lance_sql.types.sources import stored_values

if TYPE_CHECKING:
    import duckdb


def declared_schema(session: Session, definitions: str) -> pa.Schema:
    """The Arrow schema for column definitions as in CREATE TABLE.

    Defaults become field metadata, and other constraints than NOT NULL are left out. SqlError for types that
    DuckDB does not know.
    """
    import duckdb

    with scratch() as connection:
        try:
            try:
                _declare(connection, definitions)
            except duckdb.CatalogException:  # perhaps a type of CREATE TYPE
                _copy_types(session, connection)
                _declare(connection, definitions)
        except duckdb.Error as error:
            if "Sequence with name" in str(error):
                raise UnsupportedFeatureError(
                    "A default cannot take the next value of a sequence",
                    remedy="Write it in each INSERT: INSERT INTO t VALUES (nextval('s'), ...)",
                ) from None
            raise translated(error, DUCKDB) from None
        described = connection.execute(
            "SELECT is_nullable, column_default, column_name FROM duckdb_columns() "
            "WHERE table_name = 'declared' ORDER BY column_index"
        ).fetchall()
        kinds = connection.table("declared").types
    return pa.schema(
        [
            with_default(column(name, kind, nullable), default)
            for (nullable, default, name), kind in zip(described, kinds, strict=True)
        ]
    )


def _declare(connection: duckdb.DuckDBPyConnection, columns: str) -> None:
    connection.execute(f"CREATE TEMP TABLE declared ({columns})")


def _copy_types(session: Session, connection: duckdb.DuckDBPyConnection) -> None:
    """Create the types that statements created in a session."""
    computing = session.computing()
    names = computing.select("SELECT DISTINCT type_name FROM duckdb_types() WHERE NOT internal").arrow()
    nulls = [f"CAST(NULL AS {quote(name)}) AS {quote(name)}" for name in names.column(0).to_pylist()]
    if nulls:
        for row in computing.select(f"DESCRIBE SELECT {', '.join(nulls)}").arrow().to_pylist():
            connection.execute(f"CREATE TEMP TYPE {quote(row['column_name'])} AS {row['column_type']}")


def stored_query(session: Session, query: str, params: Parameters) -> tuple[str, pa.Schema | None]:
    """A query for the same rows as datasets store them, and their columns; None if Arrow's types are kept."""
    if not session.capabilities.computes_statements:
        return query, None
    described = session.select(f"DESCRIBE {query}", params).arrow()
    names = described.column("column_name").to_pylist()
    kinds = list(map(named_kind, described.column("column_type").to_pylist()))
    places = [f"c{number}" for number in range(len(names))]
    values, schema = stored_values(names, kinds, places)
    if values == places:
        return query, schema
    selected = ", ".join(f"{value} AS {quote(name)}" for value, name in zip(values, names, strict=True))
    return f"SELECT {selected} FROM ({query}) AS lance_sql_rows({', '.join(places)})", schema
