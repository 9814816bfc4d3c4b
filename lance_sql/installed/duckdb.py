"""Lance names in a user's own DuckDB connection.

DuckDB has no hook for unknown names, so `install` wraps the methods that take a statement: for connections it
was called for, the statement's Lance tables are registered first. All other connections are unaffected.
A class of its own for the one connection would be narrower; DuckDB 2 allows that, but DuckDB 1 does not.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
from lance_engine.base import LiveObjects, WeakIdentityDict, public
from lance_engine.errors import LanceError
from lance_engine.io import AllowExternal, with_external_access

from lance_sql.catalog.access import Restrictions
from lance_sql.catalog.binding import Binding, InView
from lance_sql.catalog.catalog import Catalog
from lance_sql.catalog.prepared import PreparedStatements
from lance_sql.display.plans import DUCKDB_PLAN
from lance_sql.engines.base import Parameters
from lance_sql.engines.duckdb.own_names import UNINSTALL, OwnNames
from lance_sql.engines.duckdb.refused_changes import refuse_changes
from lance_sql.engines.duckdb.settings import Changes, nulls_are_last, restrictions
from lance_sql.engines.duckdb.table import register, register_data
from lance_sql.engines.duckdb.versions import MESSAGES, sql
from lance_sql.installed.searches import InstalledSearches, explained_rows
from lance_sql.text.definitions import qualified
from lance_sql.text.kinds import KINDS, Does
from lance_sql.text.metadata_tables import LISTINGS
from lance_sql.text.shown import ALL_TABLES, shown, shown_within, with_shown
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

#: Methods of a connection whose first argument is a statement.
_METHODS = ("sql", "query", "execute", "executemany", "from_query", "get_table_names")

#: The position of the argument with the parameters.
_PARAMETERS = {"sql": "params", "query": "params", "from_query": "params", "execute": "parameters"}


class _Installed(NamedTuple):
    """The state of a connection: names of datasets, and how its statements search them."""

    binding: Binding
    searches: InstalledSearches
    prepared: PreparedStatements
    #: counts the statements that change names
    changes: Changes
    open_ones: _OpenOnes


class _OpenOnes:
    """A connection and its cursors: each has the settings of the database as long as it is open."""

    def __init__(self) -> None:
        self.connections: LiveObjects[duckdb.DuckDBPyConnection] = LiveObjects()

    def restrictions(self) -> Restrictions:
        for connection in list(self.connections):
            try:
                return restrictions(connection)
            except duckdb.ConnectionException:
                continue
        raise LanceError("The connection is closed")


_installed: WeakIdentityDict[duckdb.DuckDBPyConnection, _Installed] = WeakIdentityDict()
_hooked = False

#: Runs a statement unchanged, without resolving names.
_sql: Callable[[duckdb.DuckDBPyConnection, str], Any] = duckdb.DuckDBPyConnection.sql


@public
def install(
    connection: duckdb.DuckDBPyConnection,
    directory: str | os.PathLike[str] | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    allow_external: AllowExternal | None = None,
) -> None:
    """Let statements of `connection` and its cursors refer to datasets by name, as in `lance_sql.connect`.

    ``FROM 'a.lance'``, ``lance_scan('a.lance', version => 3)``, ``AT (TAG => 'prod')``, metadata tables, and
    with a `directory` the datasets in it by name. This applies to statements run with `sql`, `query`,
    `execute` and `executemany`; the functions of the `duckdb` module use their own connection. From then on,
    Python variables are found in all frames of the caller, as with the setting ``python_scan_all_frames``.
    ``lance_vector_search`` and ordering by a distance work as in sessions of `lance_sql`.
    A session around the connection, ``lance_sql.connect(directory, duckdb=connection)``, replaces all this.
    """
    location = None if directory is None else os.fspath(directory)
    open_ones = _OpenOnes()
    options = with_external_access(storage_options, allow_external)
    catalog = Catalog(location, options, open_ones.restrictions)
    if (uninstall := UNINSTALL.get(connection)) is not None:
        uninstall()
    connection.execute("SET python_scan_all_frames = true")  # there is now one of our frames in between
    _installed[connection] = _install(connection, catalog, open_ones)
    _hook()


def _install(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    open_ones: _OpenOnes,
    in_views: dict[str, InView] | None = None,
) -> _Installed:
    """The state of a connection; cursors have a copy of the catalog, and share what views read."""
    open_ones.connections.add(connection)
    UNINSTALL[connection] = functools.partial(_uninstall, weakref.ref(connection))
    names, this = _Names(connection), weakref.ref(connection)
    changes = Changes(own=False)
    own_names = OwnNames(names.open, changes, lambda: binding.registered(), run=_sql)
    catalog = catalog.copy(catalog.restrictions, own_names)

    def run(text: str, params: Parameters) -> pa.Table:
        return sql(names.open(), text, params).to_arrow_table()

    def last(descending: bool) -> bool:
        session = this()
        return session is not None and nulls_are_last(session, descending)

    binding: Binding
    binding = Binding(
        names,
        catalog,
        listings={name: functools.partial(_listing, names, lambda: binding, name) for name in LISTINGS},
    )
    if in_views is not None:
        binding.in_views = in_views
    prepared = PreparedStatements(binding, lambda text: _sql(names.open(), text), folds_names=False)
    searches = InstalledSearches(catalog, names, run, last)
    return _Installed(binding, searches, prepared, changes, open_ones)


def _uninstall(of: Callable[[], duckdb.DuckDBPyConnection | None]) -> None:
    """The connection knows no datasets any more."""
    connection = of()
    installed = None if connection is None else _installed.pop(connection)
    if connection is not None and installed is not None:
        for name in installed.binding.registered():
            with suppress(duckdb.Error):  # what was dropped
                connection.unregister(name)


def _listing(names: _Names, binding: Callable[[], Binding], name: str) -> pa.Table:
    """What DuckDB lists under this name, including the datasets that are known to the connection."""
    from lance_sql.engines.duckdb.listing import Listing  # takes longer to import than a query

    return Listing(_Listed(names, binding())).table(name)


class _Listed:
    """The contents of a connection, for `Listing`."""

    def __init__(self, names: _Names, binding: Binding) -> None:
        self._names = names
        self.catalog = binding.catalog
        self.known_to_engine = binding.registered

    def of_engine(self, text: str) -> pa.Table:
        """The rows of a query without datasets."""
        return _sql(self._names.open(), text).to_arrow_table()


class _Names:
    """The names of a connection, which may be garbage-collected."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = weakref.ref(connection)

    def open(self) -> duckdb.DuckDBPyConnection:
        connection = self._connection()
        if connection is None:
            raise LanceError("The connection is closed")
        return connection

    def register(self, name: str, dataset: DatasetVersion, system_columns: Sequence[str]) -> None:
        register(self.open(), name, dataset, system_columns=system_columns)

    def register_other(self, name: str, data: Any) -> None:
        register_data(self.open(), name, data)

    def unregister(self, name: str) -> None:
        self.open().unregister(name)


def _hook() -> None:
    """Replace the methods of all connections, once."""
    global _hooked
    if _hooked:
        return
    _hooked = True
    connections: Any = duckdb.DuckDBPyConnection
    for name in _METHODS:
        setattr(connections, name, _Method(getattr(connections, name), _PARAMETERS.get(name)))
    for name in ("cursor", "duplicate"):
        setattr(connections, name, _inherited(getattr(connections, name)))


class _Method:
    """A method that first registers the tables of a statement.

    For connections without names of ours, it is the original method: calls then have no frame in between, in
    which DuckDB would look for Python variables.
    """

    def __init__(self, method: Any, parameters: str | None) -> None:
        self._method = method
        self._parameters = parameters
        self.__doc__ = method.__doc__

    def __get__(self, connection: Any, owner: type | None = None) -> Any:
        installed = None if connection is None else _installed.get(connection)
        method = self._method if connection is None else self._method.__get__(connection, owner)
        return method if installed is None else functools.partial(_call, method, installed, self._parameters)


def _call(
    _method: Callable[..., Any],
    _known: _Installed,
    _parameters: str | None,
    *_arguments: Any,
    **_options: Any,
) -> Any:
    text = _arguments[0] if _arguments else _options.get("query")
    if not isinstance(text, str):
        return _method(*_arguments, **_options)
    _binding, explained = _known.binding, None
    statement = qualified(Statement(text), _binding.catalog.full_name)
    if _parameters is not None:
        given = _arguments[1] if len(_arguments) > 1 else _options.get(_parameters)
        searched, left, explained = _known.searches.replaced(statement, given)
        if searched is not statement:
            statement, _arguments = searched, _arguments[:1]
            _options[_parameters] = left
    refuse_changes(statement.tokens, _binding.catalog.names)
    _known.prepared.renew(statement)
    bound = _binding.bind(_with_tables_shown(statement, _binding)).text
    if _arguments:
        _arguments = (bound, *_arguments[1:])
    else:
        _options["query"] = bound
    try:
        with _known.changes.during(text):
            relation = _run(_method, _binding, _arguments, _options)
        _known.prepared.ran(statement)
        _known.searches.ran(statement)
        if explained is None or [column[0] for column in relation.description] != list(DUCKDB_PLAN):
            return relation
        return _method(explained_rows(relation.fetchall(), explained, DUCKDB_PLAN))
    finally:
        if any(_may_drop(token.upper) for token in statement.tokens):
            _binding.unsettle()


def _may_drop(word: str) -> bool:
    """Whether statements with this word may drop registered names: DROP VIEW, the end of a transaction."""
    return word == "DROP" or Does.TRANSACTION in KINDS.get(word, Does.OTHER)


def _run(
    _method: Callable[..., Any], _binding: Binding, _arguments: Sequence[Any], _options: Mapping[str, Any]
) -> Any:
    """The result of the method; views may read datasets that the connection did not know."""
    while True:
        try:
            return _method(*_arguments, **_options)
        except duckdb.CatalogException as error:
            missing = MESSAGES.missing_table(str(error))
            if missing is None or not _binding.supply(missing):
                raise


def _with_tables_shown(statement: Statement, binding: Binding) -> Statement:
    """A statement that lists the tables of the connection, with datasets under their own names only."""
    tokens = [token for token in statement.tokens if token.text != ";"]
    whole = shown(tokens)
    if whole == "columns":
        return Statement(ALL_TABLES)
    words = [token.upper for token in tokens]
    if whole == "names" or words == ["SHOW", "TABLES", "FROM", "MAIN"]:
        return Statement(_names_shown(binding, "SHOW TABLES", binding.catalog.names()))
    if words[:3] == ["SHOW", "TABLES", "FROM"]:
        return Statement(_names_shown(binding, statement.original.rstrip().rstrip(";"), ()))
    if shown_within(statement):
        names = _names_shown(binding, "SHOW TABLES", binding.catalog.names())
        return with_shown(statement, names, ALL_TABLES)
    return statement


def _names_shown(binding: Binding, asked: str, datasets: Sequence[str]) -> str:
    """A query that lists the tables of the connection, with datasets under their own names."""
    hidden = binding.registered().difference(datasets)
    names = ", ".join(f"({_text(name)})" for name in datasets)
    more = f" UNION SELECT * FROM (VALUES {names})" if names else ""
    listed = ", ".join(map(_text, sorted(hidden))) or "''"
    return f"SELECT name FROM ({asked}) WHERE name NOT IN ({listed}){more} ORDER BY name"


def _text(value: str) -> str:
    escaped = value.replace("'", "''")
    return f"'{escaped}'"


def _inherited(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(connection: Any, *arguments: Any, **options: Any) -> Any:
        made = method(connection, *arguments, **options)
        installed = _installed.get(connection)
        if installed is not None:
            binding = installed.binding
            _installed[made] = _install(made, binding.catalog, installed.open_ones, binding.in_views)
        return made

    return call
