"""The contents of information_schema and SHOW ALL TABLES: the tables of the engine, and all datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from lance_engine.errors import LanceError

from lance_sql.catalog.attached import SESSION, Listed
from lance_sql.catalog.namespaces import MAIN
from lance_sql.types.duckdb_names import duckdb_types

if TYPE_CHECKING:
    from lance_sql.catalog.catalog import Catalog

_ALL_TABLES = pa.schema(
    [
        ("database", pa.string()),
        ("schema", pa.string()),
        ("name", pa.string()),
        ("column_names", pa.list_(pa.string())),
        ("column_types", pa.list_(pa.string())),
        ("temporary", pa.bool_()),
    ]
)


class Source(Protocol):
    """A source of datasets and of an engine's own tables: a session, or a user's connection."""

    @property
    def catalog(self) -> Catalog:
        """The datasets, by name."""

    def of_engine(self, text: str) -> pa.Table:
        """The rows of a query that only concerns the engine."""

    def known_to_engine(self) -> set[str]:
        """The names under which datasets and their metadata are registered with the engine."""


class Listing:
    """The contents of a session, as tables of information_schema."""

    def __init__(self, session: Source) -> None:
        self._session = session

    def table(self, name: str) -> pa.Table:
        """A table of information_schema, or ``all_tables``: the result of `SHOW ALL TABLES`."""
        match name.removeprefix("information_schema."):
            case "tables":
                return self._joined(name, self._tables())
            case "columns":
                return self._joined(name, self._columns())
            case "schemata":
                schemas = self._session.catalog.attached.schemas()
                rows = [{"catalog_name": catalog, "schema_name": schema} for catalog, schema in schemas]
                return self._joined(name, rows)
            case _:
                return self._all_tables()

    def _listed(self) -> Iterator[Listed]:
        """All datasets, under all of their names."""
        catalog = self._session.catalog
        yield from catalog.attached.tables()
        inside = set(catalog.tables())
        for name in catalog.names():
            if name not in inside:
                yield Listed(SESSION, MAIN, name)

    def _tables(self) -> list[dict[str, Any]]:
        return [
            {
                "table_catalog": listed.catalog,
                "table_schema": listed.schema,
                "table_name": listed.name,
                "table_type": "BASE TABLE",
                "is_insertable_into": "YES",
                "is_typed": "NO",
            }
            for listed in self._listed()
        ]

    def _schema(self, listed: Listed) -> pa.Schema:
        """The columns of a dataset; none if it cannot be read, which is reported when it is queried."""
        try:
            dataset = self._session.catalog.listed(listed)
        except LanceError:
            dataset = None
        return pa.schema([]) if dataset is None else dataset.storage_schema

    def _columns(self) -> list[dict[str, Any]]:
        rows = []
        for listed in self._listed():
            schema = self._schema(listed)
            for position, (field, kind) in enumerate(zip(schema, duckdb_types(schema), strict=True), 1):
                rows.append(
                    {
                        "table_catalog": listed.catalog,
                        "table_schema": listed.schema,
                        "table_name": listed.name,
                        "column_name": field.name,
                        "ordinal_position": position,
                        "is_nullable": "YES" if field.nullable else "NO",
                        "data_type": kind,
                    }
                )
        return rows

    def _all_tables(self) -> pa.Table:
        columns_of: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {}
        for row in self._of_engine("information_schema.columns").to_pylist():
            if row["table_schema"].lower() != "information_schema":
                names, kinds = columns_of.setdefault(
                    (row["table_catalog"], row["table_schema"], row["table_name"]), ([], [])
                )
                names.append(row["column_name"])
                kinds.append(row["data_type"])
        for listed in self._listed():
            schema = self._schema(listed)
            columns_of[listed] = (list(schema.names), duckdb_types(schema))
        rows = [(*key, names, kinds, key[0] == "temp") for key, (names, kinds) in sorted(columns_of.items())]
        return pa.Table.from_pylist(
            [dict(zip(_ALL_TABLES.names, row, strict=True)) for row in rows], schema=_ALL_TABLES
        )

    def _joined(self, name: str, rows: list[dict[str, Any]]) -> pa.Table:
        own = self._of_engine(name)
        return pa.concat_tables([own, pa.Table.from_pylist(rows, schema=own.schema)])

    def _of_engine(self, name: str) -> pa.Table:
        """A table of the engine's information_schema, without the names registered for datasets."""
        own = self._session.of_engine(f"SELECT * FROM {name}")
        if "table_name" not in own.schema.names:
            return own
        hidden = self._session.known_to_engine()
        return own.filter(
            pa.array([value not in hidden for value in own.column("table_name").to_pylist()], pa.bool_())
        )
