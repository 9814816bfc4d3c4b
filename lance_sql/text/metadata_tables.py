"""The names of tables that describe datasets: ``FROM 'x.lance'.fragments``, and those that list them."""

from __future__ import annotations

from typing import Final

from lance_engine.inspection import Inspector


def _inspections() -> tuple[str, ...]:
    """The methods of ``ds.inspect`` that return a table."""
    return tuple(
        name
        for name, method in vars(Inspector).items()
        if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") == "pa.Table"
    )


TAGS = "tags"
INDEXES = "indexes"

METADATA_TABLES = (*_inspections(), TAGS, INDEXES)

#: The parts of a dataset that functions of DuckDB show, by the names of these.
DESCRIPTIONS: Final = {"pragma_storage_info": "storage_info", "pragma_table_info": "table_info"}

#: What lists all tables on every engine.
SCHEMA_VIEWS: Final = tuple(f"information_schema.{name}" for name in ("tables", "columns", "schemata"))
#: What lists them on DuckDB: functions,
_OF_TABLES: Final = (
    "duckdb_columns",
    "duckdb_constraints",
    "duckdb_indexes",
    "duckdb_tables",
    "duckdb_views",
)
#: and the one that lists credentials,
SECRETS: Final = "duckdb_secrets"
FUNCTIONS: Final = (*_OF_TABLES, SECRETS)
#: and views, by schema.
_SCHEMAS: Final = {
    "information_schema": (
        "check_constraints", "columns", "constraint_column_usage", "constraint_table_usage",
        "key_column_usage", "schemata", "table_constraints", "tables", "views",
    ),
    "main": (*_OF_TABLES, "sqlite_master", "sqlite_schema"),
    "pg_catalog": ("pg_indexes", "pg_tables", "pg_views"),
}  # fmt: skip
#: The views by the names that statements may use.
VIEWS: Final = {
    written: f"{schema}.{name}"
    for schema, names in _SCHEMAS.items()
    for name in names
    for written in (f"{schema}.{name}", *([] if schema == "information_schema" else [name]))
}
#: Everything that lists tables on DuckDB, and credentials.
LISTINGS: Final = (*(f"{name}()" for name in FUNCTIONS), *sorted(set(VIEWS.values())))
