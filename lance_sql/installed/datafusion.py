"""Lance names in a user's own DataFusion context."""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
from datafusion import SessionContext, Table, udtf
from datafusion.catalog import CatalogProvider, SchemaProvider, TableProviderFactory
from lance_engine.base import public
from lance_engine.errors import InvalidFilterError, LanceError
from lance_engine.io import AllowExternal, with_external_access

from lance_sql.catalog.binding import Binding
from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.engine_names import EngineNames
from lance_sql.catalog.metadata import metadata_table
from lance_sql.catalog.prepared import PreparedStatements
from lance_sql.display.plans import DATAFUSION_PLAN
from lance_sql.engines.base import EngineData, Parameters
from lance_sql.engines.datafusion.settings import nulls_are_last
from lance_sql.engines.datafusion.table import DataFusionTable, replace, replace_data
from lance_sql.engines.datafusion.unpushed import planning_again
from lance_sql.engines.datafusion.versions import (
    DEFAULT_SCHEMA,
    location_of,
    target_partitions,
)
from lance_sql.engines.statement_run import Runs
from lance_sql.engines.table import EngineTable
from lance_sql.installed.searches import InstalledSearches, explained_rows
from lance_sql.text.definitions import qualified
from lance_sql.text.reference import NEWEST, Reference, VersionChoice, moment
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import quote, spellings

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

#: The schema of a directory's catalog.
_CATALOG, _SCHEMA = DEFAULT_SCHEMA


@public
def install(
    context: SessionContext,
    directory: str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal | None = None,
) -> None:
    """Let statements of `context` refer to datasets by name, as in `lance_sql.connect`.

    ``FROM 'a.lance'``, ``'a.lance@prod'``, ``lance_scan('a.lance', 3)`` and ``CREATE EXTERNAL TABLE t STORED
    AS LANCE LOCATION 'a.lance' OPTIONS ('lance.version' '3')`` work wherever DataFusion looks up tables, and
    with a `directory` so do the names of the datasets in it. Statements passed to ``context.sql`` also
    support time travel, ``AT (VERSION => 3)``, ``_rowid``, metadata tables, and searches:
    ``lance_vector_search('a.lance', 'vector', [...])``, or ordering by a distance. Existing tables are kept.
    """
    location = None if directory is None else os.fspath(directory)
    default = context.catalog(_CATALOG)
    previous = default.schema(_SCHEMA)
    kept = {name: previous.table(name) for name in previous.names()}

    def own_names() -> EngineNames:
        registered = {spelling for name in binding.registered() for spelling in spellings(name)}
        return EngineNames(kinds={name: "table" for name in kept if name not in registered})

    options = with_external_access(storage_options, allow_external)
    catalog = Catalog(location, options, engine_names=own_names)
    default.register_schema(_SCHEMA, LanceSchema(catalog, kept))
    context.register_udtf(udtf(functools.partial(_lance_scan, catalog), "lance_scan"))
    context.register_udtf(udtf(functools.partial(_lance_metadata, catalog), "lance_metadata"))
    context.register_table_factory("LANCE", LanceTableFactory(catalog))
    binding = Binding(_Names(context), catalog)
    _bind_statements(context, catalog, binding)


@public
def register_directory(
    context: SessionContext,
    name: str,
    directory: str,
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal | None = None,
) -> None:
    """Make `directory`, with datasets in it, the catalog `name` of `context`: ``FROM name.public.sales``."""
    options = with_external_access(storage_options, allow_external)
    context.register_catalog_provider(name, DirectoryCatalog(Catalog(directory, options)))


class LanceSchema(SchemaProvider):  # type: ignore[misc]
    """The tables of a session, and any dataset by path or name: it is opened when a plan refers to it."""

    def __init__(self, catalog: Catalog, tables: dict[str, Any]) -> None:
        self._catalog = catalog
        self._tables = tables

    @property
    def table_names(self) -> list[str]:
        """A property and a list, whatever the base class declares: DataFusion expects this."""
        return [*{*self._tables, *self._catalog.tables()}]

    def table(self, name: str) -> Any:
        if name in self._tables:
            return self._tables[name]
        dataset = self._catalog.open(Reference(name, name, certain=True, quoted=True))
        return None if dataset is None else Table(DataFusionTable(EngineTable(dataset, name)))

    def register_table(self, name: str, table: Any) -> None:
        self._tables[name] = table

    def deregister_table(self, name: str, cascade: bool = False) -> None:
        self._tables.pop(name, None)

    def table_exist(self, name: str) -> bool:
        return name in self._tables


class DirectoryCatalog(CatalogProvider):  # type: ignore[misc]
    """A directory of datasets: each is a table in a single schema."""

    def __init__(self, catalog: Catalog) -> None:
        self._schema = LanceSchema(catalog, {})

    def schema_names(self) -> set[str]:
        return {_SCHEMA}

    def schema(self, name: str) -> Any:
        return self._schema if name == _SCHEMA else None


class LanceTableFactory(TableProviderFactory):  # type: ignore[misc]
    """``CREATE EXTERNAL TABLE name STORED AS LANCE LOCATION 'path' OPTIONS ('lance.version' '3')``.

    Options are ``version``, ``tag``, ``as_of`` and ``branch``, with or without the prefix ``lance.``.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def create(self, command: Any) -> Table:
        location = location_of(command)
        arguments: dict[str, Any] = {}
        for key, value in command.options().items():
            option = key.rpartition(".")[2]
            if option not in _OPTIONS:
                raise InvalidFilterError(
                    f"Unknown option {key!r}", remedy=f"Options of a Lance table: {', '.join(_OPTIONS)}"
                )
            arguments[option] = _OPTIONS[option](value)
        choice = VersionChoice(**arguments)
        return _table(self._catalog, Reference(location, location, choice, certain=True, quoted=True))


def _as_of(text: str) -> Any:
    return moment("'" + text.replace("'", "''") + "'")


_OPTIONS: dict[str, Any] = {"version": int, "tag": str, "as_of": _as_of, "branch": str}


def _table(catalog: Catalog, reference: Reference) -> Table:
    return Table(DataFusionTable(EngineTable(_dataset(catalog, reference), reference.name)))


def _dataset(catalog: Catalog, reference: Reference) -> DatasetVersion:
    dataset = catalog.open(reference)
    if dataset is None:
        raise LanceError(f"{reference.location} is not a dataset", remedy="Use a path that ends in .lance")
    return dataset


def _lance_scan(catalog: Catalog, path: Any, version: Any = None) -> Table:
    """``lance_scan('path')``, ``lance_scan('path', 3)``, ``lance_scan('path', 'prod')``."""
    choice = NEWEST
    if version is not None:
        value = version.python_value().as_py()
        choice = VersionChoice(tag=value) if isinstance(value, str) else VersionChoice(version=value)
    location = path.python_value().as_py()
    return _table(catalog, Reference(location, location, choice, certain=True, quoted=True))


def _lance_metadata(catalog: Catalog, path: Any, name: Any) -> Table:
    """``lance_metadata('path', 'fragments')``."""
    location = path.python_value().as_py()
    dataset = _dataset(catalog, Reference(location, location, certain=True, quoted=True))
    return Table(pads.dataset(metadata_table(dataset, name.python_value().as_py())))


class _Names:
    """The names of a context, which may be garbage-collected."""

    def __init__(self, context: SessionContext) -> None:
        self._context = weakref.ref(context)

    def _open(self) -> SessionContext:
        context = self._context()
        if context is None:
            raise LanceError("The SessionContext no longer exists")
        return context

    def register(self, name: str, dataset: DatasetVersion, system_columns: Sequence[str]) -> None:
        context = self._open()
        table = DataFusionTable(EngineTable(dataset, name, system_columns), target_partitions(context))
        for spelling in spellings(name):
            replace(context, spelling, table)

    def register_other(self, name: str, data: Any) -> None:
        if isinstance(data, EngineData):
            data = data.within(None, Runs())
        for spelling in spellings(name):
            replace_data(self._open(), spelling, data)

    def unregister(self, name: str) -> None:
        for spelling in spellings(name):
            self._open().deregister_table(quote(spelling))


def _bind_statements(context: SessionContext, catalog: Catalog, binding: Binding) -> None:
    """Register the names of each statement of `context` before it is planned."""
    names, this, planned = _Names(context), weakref.ref(context), planning_again(context)

    def run(text: str, params: Parameters) -> pa.Table:
        return sql(text, param_values=params or None).to_arrow_table()

    def last(descending: bool) -> bool:
        session = this()
        return session is not None and nulls_are_last(session, descending)

    searches = InstalledSearches(catalog, names, run, last)
    prepared = PreparedStatements(
        binding, lambda text: SessionContext.sql(this(), text), folds_names=True, keeps_plans=True
    )

    @functools.wraps(SessionContext.sql)
    def sql(query: str, *arguments: Any, **options: Any) -> Any:
        # Named values are parameters; additional named parameters are texts inserted into the statement.
        written = qualified(Statement(query), catalog.full_name)
        statement, left, explained = searches.replaced(written, options.get("param_values"))
        if "param_values" in options:
            options["param_values"] = left
        prepared.renew(statement)
        frame = planned(binding.bind(statement).text, *arguments, **options)
        prepared.ran(statement)
        searches.ran(statement)
        if explained is None or frame.schema().names != list(DATAFUSION_PLAN):
            return frame
        rows = frame.to_arrow_table()
        told = explained_rows(zip(*rows.to_pydict().values(), strict=True), explained, DATAFUSION_PLAN)
        return SessionContext.sql(this(), told)

    context.sql = sql
