"""Searches in the statements of a user's own connection or context."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from lance_sql.catalog.binding import Registry
from lance_sql.catalog.catalog import Catalog
from lance_sql.engines.base import Parameters
from lance_sql.searches.prepared import PreparedSearches
from lance_sql.searches.statement import Searches
from lance_sql.text.searches import index_setting
from lance_sql.text.statement import Statement

#: Number of searches whose tables are kept: we are not notified when a result is no longer used.
_CACHED: Final = 1000


class Replaced(NamedTuple):
    """A statement for the engine, its remaining parameters, and for EXPLAIN its searches."""

    statement: Statement
    parameters: Parameters
    explained: Searches | None = None


_DONE: Final = Replaced(Statement('SELECT true AS "Success" WHERE false'), None)


def explained_rows(rows: Iterable[Sequence[Any]], searches: Searches, names: tuple[str, str]) -> str:
    """A query for an engine's plan of two columns, called `names`, and the description of its searches."""
    told = [(name, "\n".join(lines)) for name, lines in searches.descriptions()]
    values = ", ".join(f"({_literal(str(title))}, {_literal(str(text))})" for title, text in [*rows, *told])
    return f"SELECT * FROM (VALUES {values}) AS plan({', '.join(names)})"


def _literal(text: str) -> str:
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


class InstalledSearches:
    """What searches need from a connection in which `run` runs statements.

    We are not notified between planning and running: what a search reads from other tables is computed when
    the statement is planned, the search itself when it runs.
    """

    def __init__(
        self,
        catalog: Catalog,
        registry: Registry,
        run: Callable[[str, Parameters], pa.Table],
        nulls_are_last: Callable[[bool], bool],
    ) -> None:
        self.by_index = False
        self._catalog = catalog
        self._registry = registry
        self._run = run
        self._nulls_are_last = nulls_are_last
        self._names: deque[str] = deque()
        self._prepared = PreparedSearches()

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def rows_of(self, text: str, params: Parameters = None) -> pa.Table:
        return self._run(text, params)

    def compute(self, expression: str) -> Any:
        return self._run(f"SELECT {expression}", None).column(0)[0].as_py()

    def nulls_are_last(self, descending: bool) -> bool:
        return self._nulls_are_last(descending)

    def ran(self, statement: Statement) -> None:
        """After the engine ran a statement."""
        self._prepared.ran(statement)

    def replaced(self, statement: Statement, params: Parameters) -> Replaced:
        """The statement with searches replaced by tables, and the remaining parameters."""
        by_index = index_setting(statement.tokens)
        if by_index is not None:
            self.by_index = by_index
            return _DONE
        statement = self._prepared.statement(statement)
        if self._prepared.keeps(statement):
            return _DONE
        searches = Searches(self, statement, params)
        if not searches.tables:
            return Replaced(statement, params)
        if not searches.is_explained:
            searches.prepare()
        for name, table in searches.tables.items():
            self._registry.register_other(name, table)
            if not searches.is_view:
                self._names.append(name)
        while len(self._names) > _CACHED:
            self._registry.unregister(self._names.popleft())
        says_plan = [token.upper for token in statement.tokens[:1]] == ["EXPLAIN"]
        return Replaced(searches.statement, searches.parameters, searches if says_plan else None)
