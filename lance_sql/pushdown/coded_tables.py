"""Tables of a session with additional columns of dictionary codes, shared by the queries that use them."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.added_columns import AddedColumns
    from lance_sql.engines.base import Engine

#: Number of unused tables that are kept for later statements.
_CACHED_TABLES: Final = 8

_numbers = itertools.count()
#: The id of a dataset, the columns that are added to it, and its system columns.
_Key = tuple[int, "AddedColumns", tuple[str, ...]]


class CodedTables:
    """The tables of a session, registered with its engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        #: the newest last; a dataset is kept so that its id stays unique
        self._tables: OrderedDict[_Key, tuple[str, DatasetVersion]] = OrderedDict()
        #: number of results that may still scan a table, by its name
        self._users: dict[str, int] = {}

    def names(self) -> set[str]:
        """The names under which they are registered with the engine."""
        return {name for name, _ in self._tables.values()}

    def use(self, name: str) -> None:
        """A query that scans a table exists; `release` is called when it does not any more."""
        self._users[name] = self._users.get(name, 0) + 1

    def release(self, name: str) -> None:
        """A query that scanned a table is released."""
        self._users[name] -= 1

    def table(self, dataset: DatasetVersion, added: AddedColumns, system_columns: tuple[str, ...]) -> str:
        """The name of a table with the rows of a dataset and additional columns."""
        key = (id(dataset), added, system_columns)
        known = self._tables.get(key)
        if known is not None:
            self._tables.move_to_end(key)
            return known[0]
        self._forget(lambda key: key[0] != id(dataset) and key[1].of == added.of, 0)
        self._forget(lambda _: True, _CACHED_TABLES - 1)
        name = f"lance_coded_{next(_numbers)}"
        self._engine.register(name, dataset, system_columns, added)
        self._tables[key] = name, dataset
        return name

    def _forget(self, chosen: Callable[[_Key], bool], kept: int) -> None:
        """Forget the oldest of some tables that are not in use, but for so many."""
        unused = [key for key, (name, _) in self._tables.items() if chosen(key) and not self._users.get(name)]
        for key in unused[: max(0, len(unused) - kept)]:
            name, _ = self._tables.pop(key)
            self._users.pop(name, None)
            self._engine.unregister(name)
