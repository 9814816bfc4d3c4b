"""Queries that group by strings of few values, over a table that has numbers in their place.

Each result row gets its string back: ``['A', 'N', 'R'][1 + number]``. The numbers ascend with the strings.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from lance_sql.session.wrapped_query import WrappedQuery
from lance_sql.text.tokens import quote

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import PlannedQuery
    from lance_sql.engines.statement_run import StatementRun
    from lance_sql.text.grouped_keys import GroupedKeys
    from lance_sql.text.statement import Statement

#: Fewer rows are grouped in the time that planning a query again takes.
_LEAST_ROWS: Final = 500_000
#: Number of texts of which the keys are kept.
_KEPT_TEXTS: Final = 32
#: Tables of more fragments are not asked for the values of their columns: each is opened for it.
_MOST_FRAGMENTS: Final = 256


class NumberedKeys(NamedTuple):
    """What a statement groups by that can be numbers, with the values that these stand for."""

    original: str
    keys: GroupedKeys
    numbered: tuple[tuple[str, tuple[str, ...]], ...]

    def text(self, table: str) -> str:
        """The statement over another table, which is called as before."""
        keys = self.keys
        values = {name.lower(): (name, found) for name, found in self.numbered}
        first, last = keys.place
        replaced = [(first, last, table if keys.named else f"{table} AS {quote(keys.table)}")]
        for column, begin, end, alias in keys.selected:
            if column in values:
                name, known = values[column]
                listed = ", ".join("'" + value.replace("'", "''") + "'" for value in known)
                written = self.original[begin:end]
                named = "" if alias is not None else f" AS {quote(name)}"
                replaced.append((begin, end, f"([{listed}]::VARCHAR[])[1 + {written}::INTEGER]{named}"))
        pieces, place = [], 0
        for begin, end, new in sorted(replaced):
            pieces += [self.original[place:begin], new]
            place = end
        return "".join([*pieces, self.original[place:]])


class KnownKeys:
    """What statements group by, kept for statements that run again over the same dataset."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[weakref.ref[DatasetVersion], NumberedKeys | None]] = {}

    def of(self, statement: Statement, table: str, dataset: DatasetVersion) -> NumberedKeys | None:
        """What a statement over a table groups by, if numbers pay; None if not."""
        place = statement.original, table
        known = self._known.get(place)
        if known is not None and known[0]() is dataset:
            return known[1]
        found = numbered_keys(statement, table, dataset)
        if len(self._known) >= _KEPT_TEXTS:
            self._known.clear()
        self._known[place] = weakref.ref(dataset), found
        return found


class NumberedQuery(WrappedQuery):
    """A query that groups by numbers; if different strings are equal by then, `plain` runs instead."""

    def __init__(
        self, numbered: PlannedQuery, plain: PlannedQuery, compares_bytes: Callable[[], bool]
    ) -> None:
        super().__init__(numbered)
        self._numbered = numbered
        self._plain = plain
        self._compares_bytes = compares_bytes

    @property
    def scans(self) -> Mapping[str, int]:
        return self._numbered.scans

    def columns(self) -> list[tuple[str, str]]:
        return self._numbered.columns()

    def prepare(self, run: StatementRun) -> None:
        self._query = self._numbered if self._compares_bytes() else self._plain


def numbered_keys(statement: Statement, table: str, dataset: DatasetVersion) -> NumberedKeys | None:
    """What a statement over a table groups by, if numbers pay; None if not."""
    words = [token.upper for token in statement.tokens]
    if "GROUP" not in words or dataset.count_rows() < _LEAST_ROWS:
        return None
    snapshot = dataset.snapshot
    if not snapshot.is_local or len(snapshot.fragments) > _MOST_FRAGMENTS:
        return None
    names = {name.lower(): name for name in dataset.storage_schema.names}
    if len(names) < len(dataset.storage_schema.names):
        return None
    from lance_sql.text.grouped_keys import grouped_keys

    keys = grouped_keys(statement.tokens, table, names)
    if keys is None or len(keys.columns) < 2:  # one dictionary alone is grouped by its codes
        return None
    from lance_engine.scan.numbered import MOST_VALUES, values_of

    coded = set(dataset.dictionary_columns(MOST_VALUES))
    numbered = []
    for key in dict.fromkeys(keys.only):
        values = values_of(snapshot, names[key]) if names[key] in coded else None
        if values and not any("\0" in value for value in values):
            numbered.append((names[key], values))
    return NumberedKeys(statement.original, keys, tuple(numbered)) if numbered else None
