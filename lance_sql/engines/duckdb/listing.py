"""What DuckDB lists of its tables, such as information_schema, with all datasets among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.errors import LanceError

from lance_sql.catalog.attached import SESSION, Listed
from lance_sql.catalog.definitions import create, create_indices
from lance_sql.catalog.namespaces import MAIN
from lance_sql.text.metadata_tables import SECRETS
from lance_sql.text.tokens import as_string, quote

if TYPE_CHECKING:
    import duckdb

    from lance_sql.catalog.catalog import Catalog
    from lance_sql.catalog.dataset import SqlDataset

#: The columns with the catalog of what a row describes, and those with its name.
_CATALOGS: Final = ("database_name", "table_catalog", "catalog_name", "constraint_catalog")
_NAMES: Final = ("table_name", "view_name", "viewname", "name")
#: Added to the numbers of what is described in another database, so that they differ from the engine's own.
_FIRST_NUMBER: Final = 1 << 40
#: The only column of the table of a dataset that cannot be read, which is not listed.
_UNREAD: Final = "column of a dataset that cannot be read"


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
    """What a session lists."""

    def __init__(self, session: Source) -> None:
        self._session = session

    def table(self, name: str) -> pa.Table:
        """The rows of a view such as ``information_schema.tables``, or of a function of DuckDB."""
        own = self._of_engine(name)
        if name == f"{SECRETS}()":
            listed = self._secrets(set(own["name"].to_pylist()))
        else:
            listed = own.slice(0, 0) if "views" in name else self._of_datasets(name)
        columns = [
            listed[field.name].cast(field.type)
            if field.name in listed.schema.names
            else pa.nulls(listed.num_rows, field.type)
            for field in own.schema
        ]
        return pa.concat_tables([own, pa.table(columns, schema=own.schema)])

    def _secrets(self, known: set[str]) -> pa.Table:
        """The secrets for datasets, besides those that the engine has as well."""
        rows = [
            {
                "name": one.name,
                "type": one.kind,
                "provider": one.provider,
                "persistent": False,
                "storage": "memory",
                "scope": list(one.scopes),
                "secret_string": one.shown(),
            }
            for one in self._session.catalog.secrets.values()
            if one.name not in known
        ]
        return pa.Table.from_pylist(rows)

    def _of_engine(self, name: str) -> pa.Table:
        """The engine's own tables, without the names registered for datasets."""
        own = self._session.of_engine(f"SELECT * FROM {name}")
        named = next((column for column in _NAMES if column in own.schema.names), None)
        if named is None:
            return own
        hidden = self._session.known_to_engine()
        return own.filter(pa.array([value not in hidden for value in own[named].to_pylist()], pa.bool_()))

    def _of_datasets(self, name: str) -> pa.Table:
        """The same of a DuckDB with an empty table for each dataset."""
        import duckdb

        catalog = self._session.catalog
        counts: dict[tuple[str, str, str], int] = {}
        # Texts of datasets are in it, which are not executed; without access, they could do nothing either.
        with closing(duckdb.connect(config={"enable_external_access": "false"})) as shadow:
            spaces = {SESSION, *(space for space, _ in catalog.attached.schemas())}
            for space in spaces:
                shadow.execute(f"ATTACH ':memory:' AS {quote(space)}")
            for space, schema in catalog.attached.schemas():
                shadow.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(space)}.{quote(schema)}")
            for listed in self._listed():
                counts[listed] = self._create(shadow, listed)
            answer = shadow.sql(f"SELECT * FROM {name} {_within(shadow, name, spaces)}").to_arrow_table()
        return _numbered(_counted(answer, counts))

    def _listed(self) -> Iterator[Listed]:
        """All datasets, under all of their names."""
        catalog = self._session.catalog
        yield from catalog.attached.tables()
        inside = set(catalog.tables())
        for name in catalog.names():
            if name not in inside:
                yield Listed(SESSION, MAIN, name)

    def _create(self, shadow: duckdb.DuckDBPyConnection, listed: Listed) -> int:
        """Create the table of a dataset, and return how many rows the dataset has."""
        target = ".".join(map(quote, listed))
        try:
            dataset: SqlDataset | None = self._session.catalog.listed(listed)
            if dataset is not None:
                create(shadow, dataset, target)
                create_indices(shadow, dataset, target)
                return dataset.count_rows()
        except LanceError:
            pass  # reported when it is queried
        shadow.execute(f"CREATE TABLE IF NOT EXISTS {target} ({quote(_UNREAD)} INTEGER)")
        return 0


def _within(shadow: duckdb.DuckDBPyConnection, name: str, spaces: set[str]) -> str:
    """The condition for rows that describe datasets."""
    columns = [column for column, *_ in shadow.sql(f"DESCRIBE SELECT * FROM {name}").fetchall()]
    conditions = [
        f"{column} IN ({', '.join(map(as_string, spaces))})" for column in _CATALOGS if column in columns
    ]
    if "column_name" in columns:
        conditions.append(f"column_name IS DISTINCT FROM {as_string(_UNREAD)}")
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def _counted(listed: pa.Table, counts: dict[tuple[str, str, str], int]) -> pa.Table:
    """``duckdb_tables()`` with the numbers of rows."""
    place = listed.schema.get_field_index("estimated_size")
    if place < 0:
        return listed
    rows: list[dict[str, Any]] = listed.select(["database_name", "schema_name", "table_name"]).to_pylist()
    sizes = pa.array([counts[tuple(row.values())] for row in rows], listed.schema.field(place).type)
    return listed.set_column(place, listed.schema.field(place), sizes)


def _numbered(listed: pa.Table) -> pa.Table:
    for place, field in enumerate(listed.schema):
        if field.name.endswith("_oid") and pa.types.is_integer(field.type):
            listed = listed.set_column(place, field, pc.add(listed.column(place), _FIRST_NUMBER))
    return listed
