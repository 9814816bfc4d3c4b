"""Statements whose scans exchange the keys of a join; see `lance_sql.engines.join_keys`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.types as at
from lance_engine.recent import Recent
from lance_engine.scan.width import estimated_row_bytes

from lance_sql.engines.join_keys import JoinKeys
from lance_sql.engines.key_conditions import KeyConditions
from lance_sql.session.wrapped_query import WrappedQuery
from lance_sql.text.joins import KeyPath, key_paths

if TYPE_CHECKING:
    from lance_engine.dataset import DatasetVersion

    from lance_sql.engines.base import Query
    from lance_sql.engines.statement_run import StatementRun

#: Smaller tables are read completely in the time that testing keys takes.
_SMALL_BYTES = 8 << 20
#: A table gives keys to tables with at least this many times its rows.
_LARGER = 2
#: Number of texts whose joins are kept.
_KEPT_TEXTS = 8


class JoinedQuery(WrappedQuery):
    """`query`, whose scans exchange keys; `begin` creates the keys of a run."""

    def __init__(self, query: Query, begin: Callable[[], JoinKeys]) -> None:
        super().__init__(query)
        self._begin = begin

    def prepare(self, run: StatementRun) -> None:
        run.join_keys = self._begin()


class _Joins(NamedTuple):
    """The joins of a text over some datasets; `useful` paths are those that may pay."""

    datasets: Mapping[str, weakref.ref[DatasetVersion]]
    useful: Sequence[KeyPath]
    #: how often the text names each table
    places: Mapping[str, int]
    rows: dict[str, int]
    conditions: KeyConditions

    def are_of(self, datasets: Mapping[str, DatasetVersion]) -> bool:
        return self.datasets.keys() == datasets.keys() and all(
            known() is datasets[name] for name, known in self.datasets.items()
        )


class JoinFilters:
    """Finds joins in the statements of a session; what it finds is kept for statements that run again.

    `filters_joins` is a capability of the engine.
    """

    def __init__(self, filters_joins: bool) -> None:
        self._filters_joins = filters_joins
        #: by text
        self._known: Recent[str, _Joins] = Recent(_KEPT_TEXTS)

    def keys(
        self,
        text: str,
        datasets: Mapping[str, DatasetVersion],
        scans: Callable[[], Mapping[str, int]],
    ) -> Callable[[], JoinKeys] | None:
        """Creates the keys of a run of a statement, called for each run; None if no scan gives any.

        `datasets` are those that the text names. `scans` is only called for queries: it returns how often the
        engine scans each of them, which is more often than the text names it if a view does so too.
        """
        joins = self._known.get(text)
        if joins is None or not joins.are_of(datasets):
            joins = self._known[text] = _joins(text, datasets)
        if not joins.useful:
            return None
        known = scans()
        if any(known.get(name) != places for name, places in joins.places.items()):
            return None
        return partial(JoinKeys, joins.useful, joins.rows, self._filters_joins, joins.conditions)


def _joins(text: str, datasets: Mapping[str, DatasetVersion]) -> _Joins:
    references = {name: weakref.ref(dataset) for name, dataset in datasets.items()}
    none = _Joins(references, (), {}, {}, KeyConditions())
    if all(map(_is_small, datasets.values())):
        return none
    columns = {name: tuple(dataset.storage_schema.names) for name, dataset in datasets.items()}
    if len({name.lower() for name in columns}) < len(columns):
        return none
    paths, places = _paths(text, tuple(columns.items()))
    useful = [path for path in paths if _is_useful(path, datasets)]
    rows = {
        name: sum(fragment.physical_rows for fragment in dataset.snapshot.fragments)
        for name, dataset in datasets.items()
        if useful
    }
    return none._replace(useful=useful, places=places, rows=rows)


@lru_cache(maxsize=64)
def _paths(
    text: str, tables: tuple[tuple[str, tuple[str, ...]], ...]
) -> tuple[list[KeyPath], dict[str, int]]:
    return key_paths(text, dict(tables))


def _is_small(dataset: DatasetVersion) -> bool:
    return dataset.count_rows() * estimated_row_bytes(dataset.storage_schema) < _SMALL_BYTES


def _is_useful(path: KeyPath, datasets: Mapping[str, DatasetVersion]) -> bool:
    receiver = datasets[path.receiver]
    kinds = (
        datasets[path.giver].storage_schema.field(path.key).type,
        receiver.storage_schema.field(path.column).type,
    )
    numbers = all(at.is_integer(kind) and not at.is_uint64(kind) for kind in kinds)
    if not numbers and not all(map(at.is_date32, kinds)):
        return False
    rows = datasets[path.giver].count_rows()
    return rows * _LARGER <= receiver.count_rows() and not _is_small(receiver)
