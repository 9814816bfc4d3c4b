"""Types of columns, in DuckDB's syntax."""

from __future__ import annotations

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError, UnsupportedTypeError

from lance_sql.engines.base import Parameters
from lance_sql.engines.duckdb.capabilities import CAPABILITIES as DUCKDB
from lance_sql.engines.errors import translated
from lance_sql.scratch import scratch
from lance_sql.statements.defaults import with_default
from lance_sql.statements.refusals import refuse_enums, refuse_types
from lance_sql.statements.session import Session

#: JSON text, which datasets store in a searchable binary form.
JSON = pa.json_(pa.string())


def declared_schema(columns: str) -> pa.Schema:
    """The Arrow schema for column definitions as in CREATE TABLE.

    Defaults become field metadata. SqlError for types that DuckDB does not know; UnsupportedFeatureError for
    constraints other than NOT NULL, which would not be enforced.
    """
    import duckdb

    with scratch() as connection:
        try:
            connection.execute(f"CREATE TEMP TABLE declared ({columns})")
        except duckdb.Error as error:
            raise translated(error, DUCKDB) from None
        described = connection.execute(
            "SELECT is_nullable, column_default, column_name, data_type FROM duckdb_columns() "
            "WHERE table_name = 'declared' ORDER BY column_index"
        ).fetchall()
        constraints = connection.execute(
            "SELECT DISTINCT constraint_type FROM duckdb_constraints() "
            "WHERE table_name = 'declared' AND constraint_type <> 'NOT NULL'"
        ).fetchall()
        refuse_types([(name, kind) for _, _, name, kind in described])
        refuse_enums([(name, kind) for _, _, name, kind in described])
        try:
            schema = connection.table("declared").to_arrow_table().schema
        except pa.ArrowInvalid as error:  # DuckDB limits the nesting of types
            raise UnsupportedTypeError(
                f"The columns are nested too deeply: {error}", remedy="Flatten them, or store them as JSON"
            ) from None
    if constraints:
        raise UnsupportedFeatureError(
            f"Datasets cannot enforce {constraints[0][0]}",
            remedy="Remove the constraint, and use MERGE INTO to keep keys unique",
        )
    fields = []
    for field, (nullable, default, _, called) in zip(schema, described, strict=True):
        # In lists and structs JSON stays text, because pyarrow cannot create empty arrays of it.
        kind = JSON if called == "JSON" else field.type
        field = field.with_type(kind).with_nullable(nullable)
        fields.append(with_default(field, default))
    return pa.schema(fields)


def json_columns(session: Session, query: str, params: Parameters) -> list[str]:
    """The names of the columns of `query` with DuckDB's type JSON, which are returned as text."""
    if not session.capabilities.computes_statements:
        return []
    described = session.select(f"DESCRIBE {query}", params).arrow()
    refuse_types([(row["column_name"], row["column_type"]) for row in described.to_pylist()])
    return [row["column_name"] for row in described.to_pylist() if row["column_type"] == "JSON"]
