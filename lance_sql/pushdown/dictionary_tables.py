"""Queries that only compare strings of a table, over the same dataset with numbers in their place."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from lance_engine.errors import LanceError

from lance_sql.engines.parts import Parts
from lance_sql.pushdown.dictionary_keys import KnownKeys, NumberedQuery
from lance_sql.text.statement import Statement

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.catalog.binding import Bound
    from lance_sql.engines.base import Engine, Parameters, PlannedQuery

#: Number of unused tables that are kept for later statements.
_KEPT_TABLES: Final = 8

_numbers = itertools.count()
#: Columns that are added to a dataset, and the system columns of the table.
_Key = tuple[int, Parts, tuple[str, ...]]


class QueryOfParts(NamedTuple):
    """A text over tables with additional columns, as a query, and the names of these tables."""

    text: str
    query: PlannedQuery
    tables: list[str]


class PartTables:
    """Tables of a session with additional columns, which are shared by queries that use the same ones."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known_keys = KnownKeys(engine.capabilities.groups_by_codes)
        #: the newest last; a dataset is kept so that its id stays unique
        self._tables: OrderedDict[_Key, tuple[str, DatasetVersion]] = OrderedDict()
        #: number of results that may still scan a table, by its name
        self._users: dict[str, int] = {}

    def names(self) -> set[str]:
        """The names under which they are registered with the engine."""
        return {name for name, _ in self._tables.values()}

    def instead(
        self, statement: Statement, bound: Bound, planned: Callable[[], PlannedQuery], parameters: Parameters
    ) -> QueryOfParts | None:
        """A query equivalent to `planned`; None if numbers do not pay, and for other statements.

        Pass its tables to `release` when it cannot run any more.
        """
        found = self._with_numbers(statement, bound, planned, parameters)
        if found is not None:
            for name in found.tables:
                self._users[name] = self._users.get(name, 0) + 1
        return found

    def _with_numbers(
        self, statement: Statement, bound: Bound, planned: Callable[[], PlannedQuery], parameters: Parameters
    ) -> QueryOfParts | None:
        datasets, pushdowns = bound.datasets, self._engine.pushdowns
        if len(datasets) != 1 or not self._engine.capabilities.groups_by_numbers:
            return None
        if not pushdowns.allow("dictionary_keys"):
            return None
        read = statement if bound.text == statement.original else Statement(bound.text)
        keys = self._known_keys.of(read, datasets, pushdowns.force)
        if keys is None:
            return None
        is_valid = self._engine.compares_bytes
        # Views and other names may hide which tables are scanned.
        scans = planned().scans
        if any(scans.get(own.table) != 1 for own in keys.tables) or not is_valid():
            return None
        tables = [
            self._table(datasets[own.table], own.parts(), statement.system_columns) for own in keys.tables
        ]
        text = keys.text(tables, [name for name, _ in planned().columns()])
        query = None if text is None else self._planned(text, parameters)
        if text is not None and query is not None and keys.fits(query, planned()):
            return QueryOfParts(text, NumberedQuery(query, planned(), keys, is_valid), tables)
        self._known_keys.refuse(read, datasets, pushdowns.force)
        return None

    def _planned(self, text: str, parameters: Parameters) -> PlannedQuery | None:
        """The query of a text over other tables, None if it needs the columns unchanged."""
        try:
            return self._engine.query(text, parameters)
        except LanceError:
            return None

    def release(self, names: list[str]) -> None:
        """Called when a query that scanned these tables is released."""
        for name in names:
            self._users[name] -= 1

    def _table(self, dataset: DatasetVersion, parts: Parts, system_columns: tuple[str, ...]) -> str:
        key = (id(dataset), parts, system_columns)
        known = self._tables.get(key)
        if known is not None:
            self._tables.move_to_end(key)
            return known[0]
        self._forget(lambda key: key[0] != id(dataset) and key[1].of == parts.of, 0)
        self._forget(lambda _: True, _KEPT_TABLES - 1)
        name = f"lance_parts_{next(_numbers)}"
        self._engine.register(name, dataset, system_columns, parts)
        self._tables[key] = name, dataset
        return name

    def _forget(self, chosen: Callable[[_Key], bool], kept: int) -> None:
        """Forget the oldest of some tables that are not in use, but for so many."""
        unused = [key for key, (name, _) in self._tables.items() if chosen(key) and not self._users.get(name)]
        for key in unused[: max(0, len(unused) - kept)]:
            name, _ = self._tables.pop(key)
            self._users.pop(name, None)
            self._engine.unregister(name)
